import http from 'k6/http';
import { check } from 'k6';

export const options = {
  iterations: 2,
  thresholds: {
    http_req_failed: ['rate==0.25'],
    'http_reqs{expected_response:true}': ['count==6'],
    'http_reqs{expected_response:false}': ['count==2'],
    'http_req_duration{expected_response:true}': ['max<30000'],
    'http_reqs{name:stock}': ['count==4'],
    'http_reqs{status:404}': ['count==2'],
  },
};

export default function () {
  const params = { tags: { name: 'stock' } };
  const answers = http.batch({
    missing: { method: 'GET', url: 'BASE/missing', params: { responseCallback: http.expectedStatuses({ min: 400, max: 404 }), ...params } },
    teapot: { method: 'POST', url: 'BASE/teapot', body: { cup: 1 }, params: { responseCallback: http.expectedStatuses(200, { min: 410, max: 420 }), tags: { name: 'stock' } } },
    fine: 'BASE/fine',
    made: { method: 'PUT', url: 'BASE/made', body: null, params: { responseCallback: http.expectedStatuses(200) } },
  });
  check(answers, {
    'statuses by name': (all) => ['missing', 'teapot', 'fine', 'made'].map((name) => all[name].status).join() === '404,418,200,201',
    'error codes': (all) => all.missing.error_code === 1404 && all.fine.error_code === 0,
  });
}
