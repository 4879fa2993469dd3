import http from 'k6/http';
import { sleep } from 'k6';
export const options = {
  vus: 1,
  duration: '20s',
  thresholds: { http_req_failed: [{ threshold: 'rate<0.5', abortOnFail: true, delayAbortEval: '3s' }] },
};
export default function () {
  http.get('BASE/broken');
  sleep(0.2);
}
export function teardown() { http.get('BASE/teardown'); }
