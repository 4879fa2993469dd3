import http from 'k6/http';
import { check } from 'k6';
// More than the socket takes at once, of a server that begins to read after 2 s.
const body = 'x'.repeat(24e6);
export const options = { iterations: 1, thresholds: { http_req_sending: ['max>1000'], http_req_waiting: ['max<1900'] } };
export default function () {
  const { timings: t } = http.post('BASE/slow-read', body, { headers: { 'Content-Type': 'text/plain' } });
  check(t, { 'sending is most of it': (t) => t.sending > 1000 && t.sending < t.duration, 'the parts are the whole': (t) => Math.abs(t.sending + t.waiting + t.receiving - t.duration) < 0.01 });
}
