import http from 'k6/http';
import { htmlReport } from './lib/report.js';

export const options = {
  scenarios: { api: { executor: 'shared-iterations', vus: 2, iterations: 10, exec: 'api' } },
  thresholds: { 'http_req_duration{scenario:api}': ['p(95)<30000'], 'http_req_failed': ['rate<0.01'] },
};

export function api() {
  http.get('BASE/api');
}

export function handleSummary(data) {
  const failed = Object.entries(data.metrics)
    .filter(([, m]) => m.thresholds && Object.values(m.thresholds).some((t) => !t.ok))
    .map(([name]) => name);
  return {
    'report.html': htmlReport(data),
    'data.json': JSON.stringify({ failed, metrics: Object.keys(data.metrics).filter((n) => n.startsWith('http_req')).length > 3, options: data.options.summaryTrendStats }),
  };
}
