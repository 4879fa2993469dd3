import http from 'k6/http';
import { sleep } from 'k6';
export const options = {
  vus: 2, duration: '30s',
  thresholds: { http_req_failed: [{ threshold: 'rate<0.2', abortOnFail: true, delayAbortEval: '1s' }] },
};
export function setup() { http.get('BASE/setup'); return { t: 1 }; }
export default function (data) { http.get('BASE/fail'); sleep(0.1 * data.t); }
export function teardown(data) { http.get(`BASE/teardown/${data.t}`); }
export function handleSummary(data) {
  return { stdout: `failed ${data.metrics.http_req_failed.values.rate > 0.5} ${data.metrics.http_req_failed.thresholds['rate<0.2'].ok}\n`, 'out.json': JSON.stringify({ n: data.metrics.iterations.values.count > 2 }) };
}
