import http from 'k6/http';
import { check } from 'k6';

export const options = { throw: true, iterations: 2, thresholds: { http_req_failed: ['rate>=0'] } };

export default function () {
  try {
    http.get('BASE/late', { timeout: 80 });
    http.get('BASE/not-reached');
  } catch (e) {
    check(e, { 'it throws': (error) => error instanceof Error });
  }
  const res = http.get('BASE/fine');
  check(res, { 'answers do not': (r) => r.status === 404 });
}
