import http from 'k6/http';
import { check } from 'k6';
export default function () {
  const r = http.batch({
    a: 'BASE/a',
    b: ['POST', 'BASE/b', { x: '1', y: 'two words' }, { tags: { kind: 'form' } }],
    c: { method: 'PUT', url: 'BASE/c', body: JSON.stringify({ n: 1 }), params: { headers: { 'Content-Type': 'application/json' } } },
    d: ['DELETE', 'BASE/d'],
    e: new Request2('BASE/e'),
  });
  check(r, {
    all: (r) => Object.values(r).every((x) => x.status === 200),
    names: (r) => Object.keys(r).join('') === 'abcde',
  });
  const l = http.batch(['BASE/1', ['GET', 'BASE/2', null, { headers: { 'X-N': '2' } }], { method: 'GET', url: 'BASE/3' }]);
  check(l, { 'is list': (l) => Array.isArray(l) && l.length === 3 && l[2].url === 'BASE/3' });
}
class Request2 { constructor(url) { this.method = 'GET'; this.url = url; } }
