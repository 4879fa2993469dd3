import http from 'k6/http';
import { check } from 'k6';

export const options = { batch: 15, batchPerHost: 5 };

export default function () {
  const get = { method: 'GET', url: `${__ENV.BASE}/a` };
  const post = {
    method: 'POST',
    url: 'BASE/form',
    body: { hello: 'world!' },
    params: { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
  };
  const responses = http.batch([
    ['GET', 'BASE/slow', null, { tags: { ctype: 'html' } }],
    get,
    post,
    ['PUT', 'BASE/put', 'text', { headers: { 'X-A': '1' } }],
    'BASE/only-url',
  ]);
  check(responses, { 'as many answers': (r) => r.length === 5 });
  check(responses[0], { 'in the order asked': (r) => r.url.endsWith('/slow') && r.body === 'late' });
  check(responses[2], { 'form': (res) => JSON.parse(res.body).body === 'hello=world%21' });
}
