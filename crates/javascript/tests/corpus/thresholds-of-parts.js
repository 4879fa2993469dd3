import http from 'k6/http';
import { check, group } from 'k6';
import { Trend, Rate, Counter, Gauge } from 'k6/metrics';

const wait = new Trend('waiting_time', true);
const errors = new Rate('errors');
const sizes = new Gauge('content_size');
const calls = new Counter('calls');

export const options = {
  iterations: 10,
  thresholds: {
    'http_req_duration{type:static}': ['med>=0', 'avg<30000'],
    'http_req_duration{status:200}': ['p(90)<30000'],
    'http_reqs{status:404}': ['count==10'],
    'http_req_failed{expected_response:true}': ['rate==0'],
    'checks{group:::login}': ['rate>0.9'],
    'checks{kind:soft}': ['rate<=0.5'],
    'errors{page:order}': ['rate<0.1'],
    waiting_time: ['max<30000', 'min>=0', 'p(99.9)<30000'],
    content_size: ['value==4000'],
    'calls{never:seen}': ['count<1'],
    'group_duration{group:::login}': ['avg<30000'],
    iteration_duration: ['avg<30000'],
    iterations: ['count==10'],
  },
};

export default function () {
  const one = http.get('BASE/style.css', { tags: { type: 'static' } });
  wait.add(one.timings.waiting, { page: 'css' });
  calls.add(1, { page: 'css' });
  group('login', () => {
    check(one, { 'is 200': (r) => r.status === 200 });
  });
  const two = http.get('BASE/missing');
  check(two, { 'soft': (r) => r.status === 200 }, { kind: 'soft' });
  errors.add(two.status !== 404, { page: 'order' });
  errors.add(true, { page: 'cart' });
  sizes.add(4000);
}
