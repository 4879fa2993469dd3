import http, { get, post, head, options as ask } from 'k6/http';
import { check } from 'k6';

export default function () {
  const heads = head('BASE/head', { headers: { 'X-Head': 'yes' } });
  check(heads, { 'no body of HEAD': (r) => r.status === 200 && !r.body });
  ask('BASE/options', null, { headers: { Origin: 'https://k6.io' } });
  http.request('REPORT', 'BASE/dav', '<x/>', { headers: { Depth: '1' } });
  http.request('get', 'BASE/lower', null, { tags: { a: 'b' } });
  http.get('BASE/number', { headers: { 'X-Number': 42, 'X-Bool': true, 'X-List': 'a, b' } });
  const posted = post('BASE/null', null);
  check(posted, {
    'request is kept': (r) => r.request.method === 'POST' && r.request.url === 'BASE/null',
    'status_text': (r) => r.status_text.startsWith('200'),
  });
  http.post('BASE/typed', new Uint8Array([104, 105]).buffer, { headers: { 'Content-Type': 'text/plain' } });
  get('BASE/own', { headers: { 'User-Agent': 'mine', Host: 'other.test' } });
}
