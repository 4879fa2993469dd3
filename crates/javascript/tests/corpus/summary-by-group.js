import http from 'k6/http';
import { check, group } from 'k6';
import { textSummary } from 'https://jslib.k6.io/k6-summary/0.1.0/index.js';
export const options = { iterations: 2, summaryTrendStats: ['min', 'p(99.9)', 'count'] };
export default function () {
  group('shop', () => { check(http.get('BASE/a'), { 'a ok': (r) => r.status === 200, 'a bad': (r) => false }); });
  check(1, { top: (v) => v === 1 });
}
export function handleSummary(data) {
  const shop = data.root_group.groups.find((g) => g.name === 'shop');
  const seen = {
    path: shop.path, id: typeof shop.id, checks: shop.checks.map((c) => `${c.name}:${c.passes}/${c.fails}`).sort().join(),
    top: data.root_group.checks[0].name, root: data.root_group.name === '' && data.root_group.path === '',
    keys: Object.keys(data.metrics.http_req_duration.values).sort().join(), contains: data.metrics.http_req_duration.contains, type: data.metrics.http_req_duration.type,
    reqs: data.metrics.http_reqs.values.count, rateType: data.metrics.checks.type, rate: data.metrics.checks.values.rate, stats: data.options.summaryTrendStats.length,
    ms: data.state.testRunDurationMs > 0, vus: data.metrics.vus_max.values.value,
  };
  return { 'seen.json': JSON.stringify(seen), stdout: textSummary(data, { indent: ' ', enableColors: false }) };
}
