import http from 'k6/http';
export const options = { iterations: 2 };
export default function () { http.get('BASE/item'); }
export function handleSummary(data) {
  return { stdout: data.metrics.no_such_metric.values.count };
}
