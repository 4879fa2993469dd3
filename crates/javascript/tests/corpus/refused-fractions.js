export const options = {
  scenarios: {
    half: {
      executor: 'constant-vus',
      vus: 2.5,
      duration: '1s',
    },
  },
};

export default function () {}
