import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 3 };

export default function () {
  const first = http.get('BASE/one');
  const second = http.get('BASE/two');
  check([first, second], {
    'kept connection': ([a, b]) => b.timings.connecting === 0 && (__ITER === 0 || a.timings.connecting === 0),
    'sums': ([a]) => Math.abs(a.timings.duration - (a.timings.sending + a.timings.waiting + a.timings.receiving)) < 0.01,
    'waited for the delay': ([a]) => a.timings.waiting >= 45 && a.timings.duration < 30000,
    'proto': ([a]) => a.proto === 'HTTP/1.1' && a.remote_ip === '127.0.0.1' && a.remote_port > 0,
  });
}
