import http from 'k6/http';
import { check } from 'k6';

export const options = { maxRedirects: 4 };

export default function () {
  const followed = http.get('BASE/start');
  check(followed, {
    'lands on the last': (r) => r.status === 200 && r.url.endsWith('/end?x=1'),
  });
  const unfollowed = http.get('BASE/start', { redirects: 0 });
  check(unfollowed, {
    'is 302': (r) => r.status === 302,
    'says where': (r) => r.headers['Location'] === 'BASE/mid',
    'is no failure': (r) => r.error_code === 0,
  });
  const posted = http.post('BASE/form', 'a=1', { redirects: 1 });
  check(posted, { 'a POST becomes a GET': (r) => r.request.method === 'GET' || r.url.endsWith('/end') });
  http.post('BASE/keep', 'kept');
  const jar = http.get('BASE/cookie-then');
  check(jar, { 'cookies of a redirect': (r) => r.status === 200 });
}
