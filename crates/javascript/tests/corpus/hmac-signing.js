import http from 'k6/http';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
import { URL } from 'https://jslib.k6.io/url/1.0.0/index.js';

const secret = __ENV.SECRET || 'a-secret';
const id = __ENV.CLIENT ?? 'client-1';

function sign(method, url, body, when) {
  const { pathname, searchParams } = new URL(url);
  const query = [...searchParams.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => `${encodeURIComponent(k)}=${encodeURIComponent(v)}`).join('&');
  const digest = crypto.sha256(body, 'hex');
  const text = [method.toUpperCase(), pathname, query, digest, when].join('\n');
  return crypto.hmac('sha256', secret, text, 'base64');
}

export default function () {
  const when = new Date(Date.UTC(2024, 0, 2, 3, 4, 5)).toISOString();
  const body = JSON.stringify({ amount: 12.5, to: 'Zoë' });
  const url = 'BASE/pay?b=2&a=x y&c=%2F';
  const headers = {
    'X-Date': when,
    'X-Signature': sign('post', url, body, when),
    Authorization: `Basic ${encoding.b64encode(`${id}:${secret}`)}`,
    'Content-Type': 'application/json; charset=utf-8',
  };
  http.post(url, body, { headers });
  const hasher = crypto.createHMAC('sha1', new Uint8Array([1, 2, 3]).buffer);
  hasher.update('part one ');
  hasher.update('part two');
  http.get('BASE/digest', { headers: { 'X-Hex': hasher.digest('hex'), 'X-Url': crypto.md5('abc', 'base64rawurl'), 'X-Bytes': String(crypto.sha1('abc', 'binary').byteLength) } });
}
