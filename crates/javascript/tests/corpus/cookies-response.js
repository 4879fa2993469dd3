import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 2 };

export default function () {
  const before = http.get('BASE/echo');
  check(before, { 'a new iteration has no cookies': (r) => r.json('headers.cookie') === undefined });
  const res = http.get('BASE/set');
  check(res, {
    'has cookie session': (r) => r.cookies.session.length === 1,
    'its value': (r) => r.cookies.session[0].value === 'abc=1',
    'its fields': (r) => r.cookies.session[0].path === '/' && r.cookies.session[0].http_only === true && r.cookies.session[0].max_age === 600,
    'another': (r) => r.cookies['theme'][0].value === 'dark',
  });
  http.get('BASE/echo');
  http.get('BASE/area/page');
}
