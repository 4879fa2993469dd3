import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 1, thresholds: { http_req_failed: ['rate<=0.9'], 'http_reqs{error_code:1050}': ['count==1'], checks: ['rate==1'] } };

export default function () {
  const late = http.get('BASE/late', { timeout: '100ms' });
  check(late, {
    'status 0': (r) => r.status === 0,
    'timeout is 1050': (r) => r.error_code === 1050,
    'says so': (r) => /timeout/.test(r.error),
    'no body': (r) => r.body === null,
  });
  const refused = http.get('http://127.0.0.1:1/');
  check(refused, { 'refused is 1212': (r) => r.error_code === 1212 && r.status === 0 });
  const teapot = http.get('BASE/teapot');
  check(teapot, { 'status of 4xx is 1000 + status': (r) => r.error_code === 1418 && r.error === '' || r.error_code === 1418 });
  const broken = http.get('BASE/broken');
  check(broken, { '503 is 1503': (r) => r.error_code === 1503 });
  const unknown = http.get('http://nowhere.invalid/');
  check(unknown, { 'no such host is 1101': (r) => r.error_code === 1101 });
  let caught = null;
  try {
    http.get('not a url');
  } catch (e) {
    caught = e;
  }
  check(caught, { 'an invalid URL throws nothing by itself': (e) => e === null || e instanceof Error });
  const ok = http.get('BASE/fine');
  check(ok, { 'fine': (r) => r.error_code === 0 && r.error === '' });
}
