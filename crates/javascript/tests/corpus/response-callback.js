import http from 'k6/http';
import { check } from 'k6';

http.setResponseCallback(http.expectedStatuses({ min: 200, max: 299 }, 404));

export const options = { iterations: 1, thresholds: { http_req_failed: ['rate<0.26', 'rate>0.24'] } };

export default function () {
  const statuses = ['fine', 'missing', 'moved'].map((place) => http.get(`BASE/${place}`, { redirects: 0 }).status);
  const off = http.get('BASE/broken', { responseCallback: null });
  statuses.push(off.status);
  http.setResponseCallback(http.expectedStatuses(500));
  statuses.push(http.get('BASE/broken').status);
  check(statuses, { 'as they come': (s) => s.join() === '200,404,302,500,500' });
}
