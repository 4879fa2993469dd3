import http from 'k6/http';
import { fail, check } from 'k6';
export const options = { vus: 1, iterations: 3 };
export default function () {
  const res = http.get('BASE/x');
  if (!check(res, { 'is 201': (r) => r.status === 201 })) fail('status code was *not* 201');
  http.get('BASE/after');
}
