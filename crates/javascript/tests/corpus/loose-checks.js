import http from 'k6/http';
import { check, fail } from 'k6';
export const options = { iterations: 1, thresholds: { checks: ['rate==0.5'] } };
export default function () {
  const answer = http.get('BASE/x');
  const passed = [
    check(answer, {}),
    check(answer, { 'a text': () => 'yes', 'a number': () => 1, 'an object': () => ({}), 'a list': () => [] }),
    check(answer, { 'an empty text': () => '', zero: () => 0, nothing: () => undefined, 'null': () => null }),
    check('val', { 'a value': true, 'its value': (v) => v === 'val', 'false value': false, 'zero value': 0 }),
  ];
  http.get(`BASE/${passed.join('-')}`);
}
