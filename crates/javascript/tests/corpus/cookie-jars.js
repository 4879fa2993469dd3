import http from 'k6/http';
import { check } from 'k6';

export const options = { noCookiesReset: true, iterations: 2 };

export default function () {
  const jar = http.cookieJar();
  if (__ITER === 0) {
    jar.set('BASE/', 'my_cookie', 'hello world', { path: '/my', max_age: 600 });
    jar.set('BASE/', 'all', '1');
  }
  http.get('BASE/my/page');
  http.get('BASE/other', { cookies: { extra: 'x', all: { value: '2', replace: true } } });
  const cookies = jar.cookiesForURL('BASE/my/page');
  check(cookies, {
    'has my_cookie': (c) => c.my_cookie.length === 1,
    'has all': (c) => c.all[0] === '1',
  });

  const own = new http.CookieJar();
  own.set('BASE', 'own', 'jar');
  http.get('BASE/own', { jar: own });
  own.clear('BASE/own');
  http.get('BASE/own', { jar: own });
}
