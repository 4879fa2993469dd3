import http from 'k6/http';
import { check } from 'k6';

export const options = { batch: 20, batchPerHost: 3 };

export default function () {
  const started = Date.now();
  const responses = http.batch(Array.from({ length: 9 }, (_, i) => ['GET', `BASE/part/${i}`]));
  const took = Date.now() - started;
  check(responses, {
    'nine answers': (r) => r.length === 9 && r.every((one) => one.status === 200),
    'three at once': () => took >= 890 && took < 2600,
  });
}
