import http from 'k6/http';
import { check } from 'k6';
export default function () {
  const r = http.post('BASE/a?x=1', { k: 'v' }, { headers: { 'X-Own': 'é'.normalize('NFD').length > 1 ? 'own' : '' }, cookies: { c: '1' } });
  check(r, {
    'names of fields': (r) => r.headers['Content-Type'] === 'text/plain; charset=utf-8' && r.headers['X-Request-Id'] === 'r-1' && r.headers['content-type'] === undefined,
    'joined fields': (r) => r.headers['X-Many'] === 'one, two',
    'status texts': (r) => r.status === 207 && r.status_text.startsWith('207 '),
    'proto, address': (r) => r.proto === 'HTTP/1.1' && r.remote_ip === '127.0.0.1' && r.remote_port === Number('PORT'),
    'request': (r) => r.request.method === 'POST' && r.request.url === 'BASE/a?x=1' && r.request.body === 'k=v' && r.request.headers['X-Own'][0] === 'own' && r.request.cookies.c[0].value === '1',
    'timings': (r) => ['blocked', 'connecting', 'tls_handshaking', 'sending', 'waiting', 'receiving', 'duration'].every((t) => typeof r.timings[t] === 'number' && r.timings[t] >= 0),
    'duration is the sum': (r) => Math.abs(r.timings.duration - r.timings.sending - r.timings.waiting - r.timings.receiving) < 0.01,
    'cookies': (r) => r.cookies.sid[0].value === 'abc' && r.cookies.sid[0].path === '/' && r.cookies.sid[0].http_only === true && r.cookies.sid[0].secure === false,
    'error': (r) => r.error === '' && r.error_code === 0,
    'url': (r) => r.url === 'BASE/a?x=1',
    'body': (r) => r.body === 'grüße' && r.body.length === 5,
    'not JSON': (r) => { try { r.json(); return false; } catch (e) { return true; } },
  });
}
