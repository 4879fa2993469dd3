import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import { check } from 'k6';

const allErrors = new Counter('error_counter');
const gauge = new Gauge('ContentSize');
const rate = new Rate('task_success_rate');
const trend = new Trend('task_latency');

export const options = { iterations: 4 };

export default function () {
  const n = __ITER + 1;
  trend.add(n * 10);
  trend.add(n);
  rate.add(n % 2 === 0);
  rate.add(1);
  rate.add(0);
  gauge.add(n * 100);
  allErrors.add(n);
  allErrors.add(0.5);
  check(trend, { 'has a name': (t) => t.name === 'task_latency' });
  const r = http.get('BASE/t');
  gauge.add(r.body.length);
}
