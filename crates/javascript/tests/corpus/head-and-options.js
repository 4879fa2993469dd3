import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const head = http.head('BASE/file', { headers: { 'X-Kind': 'head' } });
  const allowed = http.options('BASE/file', null, { headers: { 'X-Kind': 'options' } });
  const purge = http.request('PURGE', 'BASE/cache', null, { tags: { kind: 'purge' } });
  const empty = http.post('BASE/empty');
  const text = http.post('BASE/text', '');
  const form = http.post('BASE/form', { a: [1, 2], b: true, c: 1.5, d: null, 'e f': 'ö&=' });
  const del = http.del('BASE/gone', JSON.stringify({ why: 'old' }), { headers: { 'Content-Type': 'application/json' } });
  const got = http.request('GET', 'BASE/search', JSON.stringify({ q: 1 }));
  check(null, {
    'head has no body': () => head.status === 200 && !head.body && head.request.method === 'HEAD',
    'options': () => allowed.headers.Allow === 'GET, HEAD' && allowed.request.method === 'OPTIONS',
    'own method': () => purge.status === 200 && purge.request.method === 'PURGE',
    'all answered': () => [empty, text, form, del, got].every((r) => r.status === 200),
  });
}
