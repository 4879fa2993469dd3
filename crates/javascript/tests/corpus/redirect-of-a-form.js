import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 1, thresholds: { http_reqs: ['count==5'], 'http_reqs{status:302}': ['count==3'] } };
export default function () {
  const r = http.post('BASE/one', { a: 'b' });
  check(r, { 'at the end': (r) => r.status === 200 && r.url === 'BASE/three', 'cookie was set': (r) => http.cookieJar().cookiesForURL('BASE/').sid[0] === '1', 'request of the last': (r) => r.request.method === 'GET' });
  const s = http.get('BASE/one', { redirects: 0 });
  check(s, { 'not followed': (s) => s.status === 302 && s.headers.Location === '/two' });
  http.get('BASE/last');
}
