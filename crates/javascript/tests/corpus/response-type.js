import http from 'k6/http';
import { check } from 'k6';
import { md5 } from 'k6/crypto';

export const options = { discardResponseBodies: true };

export default function () {
  const none = http.get('BASE/bytes');
  const text = http.get('BASE/text', { responseType: 'text' });
  const binary = http.get('BASE/bytes', { responseType: 'binary' });
  check(none, { 'discarded': (r) => r.body === null && r.status === 200 });
  check(text, { 'text': (r) => r.body === 'grüße' && r.body.length === 5 });
  check(binary, {
    'binary': (r) => r.body instanceof ArrayBuffer && r.body.byteLength === 5,
    'bytes': (r) => Array.from(new Uint8Array(r.body)).join() === '0,255,16,128,10',
    'digest of bytes': (r) => md5(new Uint8Array([104, 105]).buffer, 'hex') === '49f68a5c8493ec2c0bf489821c21fc3b',
  });
  const back = http.post('BASE/back', binary.body);
  check(back, { 'sent': (r) => r.status === 200 });
}
