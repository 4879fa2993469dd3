import http from 'k6/http';
import { Trend } from 'k6/metrics';
const t = new Trend('t');
export const options = { iterations: 1, summaryTrendStats: ['min', 'max', 'avg', 'p(99)', 'p(99.9)', 'count', 'med'] };
export default function () {
  http.get('BASE/x');
  [4, 1, 3, 2].forEach((v) => t.add(v));
}
export function handleSummary({ metrics, root_group, options, state }) {
  const v = metrics.t.values;
  return {
    stdout: [
      `keys ${Object.keys(v).sort().join()}`,
      `values ${v.min} ${v.max} ${v.avg} ${v.count} ${v.med}`,
      `http ${Object.keys(metrics.http_req_duration.values).length} ${metrics.http_req_duration.contains} ${metrics.http_req_duration.type}`,
      `counter ${Object.keys(metrics.http_reqs.values).sort().join()} ${metrics.http_reqs.values.count}`,
      `rate ${Object.keys(metrics.http_req_failed.values).sort().join()} ${metrics.http_req_failed.values.rate} ${metrics.http_req_failed.values.fails}`,
      `data ${metrics.data_received.contains} ${metrics.data_sent.values.count > 0}`,
      `iterations ${metrics.iterations.values.count} ${metrics.iteration_duration.values.count}`,
      `group ${root_group.name === ''} ${root_group.path === ''} ${Array.isArray(root_group.groups)}`,
      `options ${options.summaryTrendStats.length} state ${state.testRunDurationMs > 0}`,
      `expected ${metrics['http_req_duration{expected_response:true}']?.values.count}`,
    ].join('\n'),
  };
}
