import http from 'k6/http';
import { URL, URLSearchParams } from 'https://jslib.k6.io/url/1.0.0/index.js';
import { check } from 'k6';

export default function () {
  const url = new URL(`${__ENV.BASE}/search`);
  url.searchParams.append('utm_medium', 'organic mail');
  url.searchParams.append('multiple', ['foo', 'bar']);
  url.searchParams.set('q', 'ä&b');
  http.get(url.toString());

  const params = new URLSearchParams([['page', '2'], ['sort', 'up']]);
  params.delete('sort');
  params.append('page', '3');
  check(params, {
    'text': (p) => p.toString() === 'page=2&page=3',
    'get and all': (p) => p.get('page') === '2' && p.getAll('page').length === 2 && !p.has('sort'),
  });
  http.get(`${__ENV.BASE}/list?${params.toString()}`);
  const parsed = new URL('https://user@example.com:8443/a/b?c=1#d');
  check(parsed, { 'parts': (u) => [u.protocol, u.hostname, u.port, u.pathname, u.search, u.hash].join(' ') === 'https: example.com 8443 /a/b ?c=1 #d' });
}
