import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';
import { Trend } from 'k6/metrics';

const t = new Trend('took');
export const options = {
  iterations: 2,
  tags: { team: 'shop' },
  thresholds: {
    'http_reqs{team:shop}': ['count==6'],
    'http_reqs{number:5}': ['count==2'],
    'http_reqs{yes:true}': ['count==2'],
    'http_reqs{step:login}': ['count==2'],
    'http_reqs{method:POST}': ['count==2'],
    'http_reqs{team:shop,step:login}': ['count==2'],
    'took{endpoint:items}': ['med>=0', 'avg>=0'],
    'iterations{team:shop}': ['count==2'],
    'http_req_waiting{name:items}': ['max<30000'],
  },
};

export default function () {
  http.get('BASE/five', { tags: { number: 5, yes: true } });
  exec.vu.metrics.tags.step = 'login';
  http.post('BASE/login', null);
  delete exec.vu.metrics.tags.step;
  const answer = http.get(`BASE/items/${__ITER}`, { tags: { name: 'items' } });
  t.add(answer.timings.duration, { endpoint: 'items' });
  check(exec.vu.metrics.tags, { 'tags of the VU': (tags) => tags.team === 'shop' && tags.step === undefined && tags.scenario === 'default' && tags.group === '' });
}
