import http from 'k6/http';
import { check, sleep } from 'k6';
import { Rate, Trend } from 'k6/metrics';
const errorRate = new Rate('errors');
const loginDuration = new Trend('login_duration', true);
export const options = {
  vus: 2, iterations: 6,
  thresholds: {
    http_req_duration: ['p(95)<5000', 'p(99)<10000'],
    http_req_failed: ['rate<0.01'],
    errors: ['rate<0.05'],
    login_duration: ['p(90)<5000'],
  },
};
export default function () {
  const res = http.get('BASE/health');
  loginDuration.add(res.timings.duration);
  check(res, {
    'status is 200': (r) => r.status === 200,
    'response time < 5s': (r) => r.timings.duration < 5000,
    'body has status': (r) => JSON.parse(r.body).status === 'ok',
  }) || errorRate.add(1);
  sleep(0.01);
}
