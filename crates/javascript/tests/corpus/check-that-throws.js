import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 2, thresholds: { checks: ['rate>0.4'] } };
export default function () {
  const r = http.get('BASE/t');
  check(r, { before: () => true, 'reads of null': (r) => r.json('nope').deep === 1, after: () => true });
  http.get('BASE/never');
}
