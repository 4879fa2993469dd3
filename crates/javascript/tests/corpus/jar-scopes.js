import http from 'k6/http';
import { check } from 'k6';
export default function () {
  const jar = http.cookieJar();
  jar.set('BASE', 'plain', 'a');
  jar.set('BASE/sub', 'scoped', 'b', { path: '/sub', max_age: 600 });
  jar.set('BASE', 'gone', 'c', { expires: 'Mon, 01 Jan 2001 00:00:00 GMT' });
  http.get('BASE/sub/x');
  http.get('BASE/other', { cookies: { plain: 'mine', extra: 'd' } });
  http.get('BASE/other', { cookies: { plain: { value: 'mine', replace: true } } });
  check(jar.cookiesForURL('BASE/sub/'), {
    'two cookies': (c) => Object.keys(c).sort().join() === 'plain,scoped',
    'lists of values': (c) => c.plain[0] === 'a',
  });
  jar.delete('BASE', 'plain');
  http.get('BASE/sub/y');
  jar.clear('BASE/sub');
  http.get('BASE/sub/z');
}
