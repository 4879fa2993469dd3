import { check } from 'k6';
import { Httpx } from 'https://jslib.k6.io/httpx/0.1.0/index.js';

const session = new Httpx({ baseURL: __ENV.BASE, headers: { 'X-App': 'shop' }, timeout: 20000 });

export default function () {
  const login = session.post('/auth', JSON.stringify({ user: 'ann' }), { headers: { 'Content-Type': 'application/json' } });
  session.addHeader('Authorization', `Bearer ${login.json('token')}`);
  session.addTag('who', 'ann');
  const me = session.get('/me');
  check(me, { 'me': (r) => r.status === 200 });
  session.delete('/me/session');
  session.clearHeader('X-App');
  session.batch([{ method: 'GET', url: '/a' }]);
}
