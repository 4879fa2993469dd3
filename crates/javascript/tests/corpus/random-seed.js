import http from 'k6/http';
import { randomSeed, check } from 'k6';

export const options = { iterations: 2 };

export default function () {
  randomSeed(123456789);
  const first = [Math.random(), Math.random()];
  randomSeed(123456789);
  const again = [Math.random(), Math.random()];
  check(first, {
    'the same numbers': (f) => f.join() === again.join(),
    'in [0, 1)': (f) => f.every((n) => n >= 0 && n < 1) && f[0] !== f[1],
  });
  http.get(`${__ENV.BASE}/shuffle/${[1, 2, 3].sort(() => Math.random() - 0.5).length}`);
}
