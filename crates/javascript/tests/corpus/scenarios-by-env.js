import http from 'k6/http';
import exec from 'k6/execution';

const all = {
  browse: { executor: 'constant-vus', vus: 1, duration: '300ms', exec: 'browse' },
  buy: { executor: 'per-vu-iterations', vus: 2, iterations: 1, exec: 'buy', env: { ITEM: '7' } },
  admin: { executor: 'shared-iterations', vus: 1, iterations: 1, exec: 'admin' },
};
const { SCENARIOS } = __ENV;
export const options = {
  scenarios: SCENARIOS ? Object.fromEntries(SCENARIOS.split(',').map((name) => [name, all[name]])) : all,
};

export function browse() {
  http.get('BASE/browse');
}

export const buy = () => {
  http.post(`${__ENV.BASE}/buy/${exec.scenario.name}`, { item: __ENV.ITEM });
};

export const admin = async () => {
  await http.asyncRequest('GET', 'BASE/admin');
};
