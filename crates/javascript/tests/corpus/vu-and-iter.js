import http from 'k6/http';
import { check } from 'k6';

export const options = {
  scenarios: { each: { executor: 'per-vu-iterations', vus: 3, iterations: 2 } },
};

const inInit = [typeof __VU, typeof __ITER];

export default function () {
  check(inInit, { 'types in init': (t) => t[0] === 'number' });
  const user = `user${String(__VU).padStart(3, '0')}`;
  http.post('BASE/visit', JSON.stringify({ user, n: __ITER }));
}
