import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 2 };

export default async function () {
  const urls = ['BASE/slow', 'BASE/a', 'BASE/b'];
  const responses = await Promise.all(urls.map((url) => http.asyncRequest('GET', url)));
  check(responses, {
    'in the order of promises': (all) => all.map((r) => r.url.slice(-1)).join('') === 'wab',
  });
  const first = await Promise.race([
    http.asyncRequest('GET', 'BASE/slow'),
    http.asyncRequest('POST', 'BASE/quick', { a: 'b' }, { headers: { 'X-Race': '1' } }),
  ]);
  check(first, { 'the quick one is first': (r) => r.url.endsWith('/quick') });
  try {
    await step();
  } catch (e) {
    check(e, { 'rejections are caught': (error) => error.message === 'not today' });
  } finally {
    await http.asyncRequest('DELETE', 'BASE/last');
  }
}

async function step() {
  const res = await http.asyncRequest('GET', 'BASE/step');
  if (res.status === 409) {
    throw new Error('not today');
  }
}
