import http from 'k6/http';
import { check } from 'k6';
import { Rate } from 'k6/metrics';
const errors = new Rate('errors');
export const options = { iterations: 4, thresholds: { errors: [{ threshold: 'rate<0.1', abortOnFail: false }], checks: ['rate>0.4'] } };
export default () => {
  const r = http.get(`BASE/${__ITER % 2 ? 'bad' : 'good'}`);
  check(r, { ok: (r) => r.status == 200 }) || errors.add(1);
};
