import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 2, thresholds: { http_req_failed: ['rate>0.4'], checks: ['rate>0.9'] } };
export default function () {
  const bad = http.get('http://127.0.0.1:1/');
  const good = http.get('BASE/ok');
  check(bad, {
    'status 0': (r) => r.status === 0,
    'code 1212': (r) => r.error_code === 1212,
    'says why': (r) => /refused/.test(r.error),
    'no body': (r) => r.body === null || r.body === undefined || r.body === '',
    'headers is an object': (r) => typeof r.headers === 'object',
  });
  check(good, { ok: (r) => r.status === 200 && r.error === '' && r.error_code === 0 });
}
