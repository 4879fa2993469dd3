import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 3 };

let kept;

export default function () {
  if (kept) {
    check(kept, {
      'its body': (r) => r.body === '{"number":1}',
      'its JSON': (r) => r.json('number') === 1,
      'its fields': (r) => r.headers['X-Kind'] === 'first',
    });
  } else {
    kept = http.get('BASE/first');
  }
  http.get('BASE/next');
}
