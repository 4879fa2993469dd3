import http from 'k6/http';
import { check, group } from 'k6';
import { Trend } from 'k6/metrics';
import { textSummary } from 'https://jslib.k6.io/k6-summary/0.0.2/index.js';

const price = new Trend('price');
export const options = {
  iterations: 3,
  summaryTrendStats: ['min', 'avg', 'max', 'p(90)', 'count'],
  thresholds: { checks: ['rate>0.5'], price: ['max<10'] },
};

export default function () {
  group('shop', () => {
    const res = http.get('BASE/item');
    check(res, { 'is 200': (r) => r.status === 200, 'is cheap': (r) => __ITER > 0 });
    price.add(4 + __ITER);
  });
}

export function handleSummary(data) {
  const checks = data.root_group.groups[0].checks.map((c) => `${c.name}:${c.passes}/${c.fails}`);
  const slim = {
    calls: data.metrics.http_reqs.values.count,
    iterations: data.metrics.iterations.values.count,
    price: data.metrics.price.values,
    rate: data.metrics.checks.values.rate,
    passes: data.metrics.checks.values.passes,
    failed: data.metrics.http_req_failed.values.rate,
    kinds: [data.metrics.price.type, data.metrics.http_reqs.type, data.metrics.http_req_duration.contains],
    ok: data.metrics.price.thresholds['max<10'].ok,
    names: checks,
    took: data.state.testRunDurationMs > 0,
  };
  return {
    'summary.json': JSON.stringify(slim),
    stdout: 'my own summary\n' + textSummary(data, { indent: ' ', enableColors: false }),
  };
}
