import http from 'k6/http';
import { check } from 'k6';
export const options = { discardResponseBodies: true, iterations: 1 };
export default function () {
  const a = http.get('BASE/j');
  const b = http.get('BASE/j', { responseType: 'text' });
  const c = http.get('BASE/j', { responseType: 'binary' });
  check(null, {
    'no body': () => a.body === null,
    'json throws': () => { try { a.json(); return false; } catch (e) { return true; } },
    text: () => b.json('x') === 1 && b.json().x === 1,
    binary: () => c.body instanceof ArrayBuffer && c.body.byteLength === 7,
  });
}
