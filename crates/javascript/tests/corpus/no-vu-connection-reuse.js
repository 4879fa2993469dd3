import http from 'k6/http';
import { check } from 'k6';

export const options = { noVUConnectionReuse: true, vus: 1, iterations: 3 };

export default function () {
  http.get('BASE/first');
  const second = http.get('BASE/second');
  check(second, { 'kept within the iteration': (r) => r.timings.connecting === 0 });
}
