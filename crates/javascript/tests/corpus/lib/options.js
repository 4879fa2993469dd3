export const options = {
  scenarios: {
    imported: { executor: 'per-vu-iterations', vus: 1, iterations: 2 },
  },
};
