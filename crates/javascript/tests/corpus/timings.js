import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 2, thresholds: { http_req_sending: ['max<5000'], http_req_waiting: ['min>900'], http_req_blocked: ['max<5000'], http_req_receiving: ['max<5000'] } };
export default function () {
  const r = http.post('BASE/slow', 'x'.repeat(200000));
  const t = r.timings;
  check(t, {
    'sum is duration': (t) => Math.abs(t.sending + t.waiting + t.receiving - t.duration) < 0.001,
    'waits 1 s': (t) => t.waiting >= 950 && t.duration >= 950,
    'sending is short': (t) => t.sending >= 0 && t.sending < 900,
    'connects once': (t) => (__ITER === 0 ? t.connecting > 0 && t.blocked >= 0 : t.connecting === 0),
    'no tls': (t) => t.tls_handshaking === 0,
  });
}
