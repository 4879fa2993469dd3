import http from 'k6/http';
import { check } from 'k6';
export const options = { scenarios: { two: { executor: 'per-vu-iterations', vus: 2, iterations: 3 } }, setupTimeout: '10s' };
export function setup() {
  const r = http.post('BASE/login', JSON.stringify({ u: 'ann' }), { headers: { 'Content-Type': 'application/json' } });
  return { token: r.json('token'), list: [1, 2, 3], when: new Date(0), none: undefined, f: () => 1 };
}
export default function (data) {
  check(data, {
    'a copy of JSON': (d) => d.when === '1970-01-01T00:00:00.000Z' && !('none' in d) && !('f' in d),
    'a copy for each VU': (d) => d.list.length === 3 + __ITER,
  });
  data.list.push(4);
  http.get('BASE/me', { headers: { Authorization: `Bearer ${data.token}` } });
}
export function teardown(data) { http.del('BASE/login', null, { headers: { 'X-List': String(data.list.length) } }); }
