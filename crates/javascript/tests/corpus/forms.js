import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const res = http.post('BASE/form', {
    zip: 10115,
    name: 'Zoë & co',
    list: ['b', 'a'],
    yes: true,
    none: null,
    price: 1.5,
    'a[b]': 'c d',
  });
  check(res, { 'is a form': (r) => r.json('headers.content-type') === 'application/x-www-form-urlencoded' });
  http.post('BASE/json', { a: 1 }, { headers: { 'Content-Type': 'application/json' } });
  http.request('POST', 'BASE/empty');
  http.put('BASE/put', { only: 'one' });
  http.del('BASE/del', 'reason=old');
}
