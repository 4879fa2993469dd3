import http from 'k6/http';
import { check } from 'k6';

export const options = { noConnectionReuse: true, iterations: 3 };

export default function () {
  const res = http.get('BASE/one');
  check(res, { 'a connection each': (r) => r.timings.connecting > 0 && r.timings.blocked >= 0 });
}
