import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 3, thresholds: { http_req_failed: ['rate==1'], 'http_reqs{error_code:1101}': ['count==3'] } };
export default function () {
  const answer = http.get('http://nowhere.invalid/item');
  check(answer, {
    'no status': (r) => r.status === 0 && r.body === null,
    'error_code': (r) => r.error_code === 1101,
    'error': (r) => r.error !== '',
  });
}
