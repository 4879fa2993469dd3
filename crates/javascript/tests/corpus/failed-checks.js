import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 4 };

export default function () {
  const res = http.get('BASE/flaky');
  const passed = check(res, {
    'status is 200': (r) => r.status === 200,
    'truthy values pass': () => 'yes',
    'falsy values fail': () => 0,
    'plain values': true,
    'a missing field fails': (r) => r.json('nope'),
  });
  if (passed) {
    http.get('BASE/not-reached');
  }
  check('text', { 'of any value': (t) => t.length === 4 });
}
