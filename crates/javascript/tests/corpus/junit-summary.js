import http from 'k6/http';
import { check, group } from 'k6';
import { jUnit, textSummary } from 'https://jslib.k6.io/k6-summary/0.1.0/index.js';
export const options = { iterations: 2, thresholds: { http_req_duration: ['p(95)<30000'], checks: ['rate>0.9'], 'http_reqs{kind:a}': ['count<1'] } };
export default function () {
  group('first', () => check(http.get('BASE/a', { tags: { kind: 'a' } }), { 'is 200': (r) => r.status === 200 }));
  check(http.get('BASE/b'), { 'is cheap': (r) => __ITER === 0 });
}
export function handleSummary(data) {
  const text = textSummary(data, { indent: '> ', enableColors: false });
  return {
    'junit.xml': jUnit(data),
    'summary.txt': text,
    'raw.json': JSON.stringify({
      groups: data.root_group.groups.map((g) => `${g.path} ${g.checks[0].path} ${g.checks[0].passes}`),
      checks: data.root_group.checks.map((c) => `${c.path} ${c.passes}/${c.fails}`),
      failed: Object.entries(data.metrics).filter(([, m]) => Object.values(m.thresholds ?? {}).some((t) => !t.ok)).map(([name]) => name).sort(),
      rate: data.metrics.checks.values.rate,
    }),
  };
}
