import http from 'k6/http';
import { check } from 'k6';

http.setResponseCallback(http.expectedStatuses({ min: 200, max: 204 }, 404));

const only200 = http.expectedStatuses(200);

export const options = {
  iterations: 2,
  thresholds: {
    http_req_failed: ['rate<0.3'],
    'http_reqs{expected_response:false}': ['count==2'],
    'http_req_failed{name:odd}': ['rate===1'],
    'http_req_duration{expected_response:true}': ['max<30000'],
  },
};

export default function () {
  http.get('BASE/ok');
  http.get('BASE/none'); // 404 is expected
  http.get('BASE/empty');
  http.get('BASE/empty', { responseCallback: only200, tags: { name: 'odd' } });
  const res = http.get('BASE/moved', { redirects: 0, responseCallback: http.expectedStatuses(302) });
  check(res, { 'is 302': (r) => r.status === 302 });
}
