import http from 'k6/http';
import { check } from 'k6';
http.setResponseCallback(http.expectedStatuses({ min: 200, max: 299 }, 404));
export const options = { iterations: 2, thresholds: { http_req_failed: ['rate<0.4'], 'http_req_duration{expected_response:true}': ['max<9000'], 'http_reqs{expected_response:false}': ['count==2'] } };
export default function () {
  http.get('BASE/404');
  http.get('BASE/500');
  http.get('BASE/500', { responseCallback: http.expectedStatuses(500) });
  http.get('BASE/500', { responseCallback: null });
}
