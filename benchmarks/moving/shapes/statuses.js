// Statuses, expected or not; a threshold that does not hold.
import http from "k6/http";
import { check } from "k6";

export const options = { vus: 2, iterations: 20, thresholds: { http_req_failed: ["rate<0.1"] } };

export default function () {
  const fine = http.get(`${__ENV.BASE}/_/status/200`);
  check(fine, { "200": (r) => r.status === 200 });
  const missing = http.get(`${__ENV.BASE}/_/status/404`);
  check(missing, { "404": (r) => r.status === 404 });
  http.get(`${__ENV.BASE}/_/status/404`, { responseCallback: http.expectedStatuses(404) });
  http.get(`${__ENV.BASE}/_/status/200`, { responseCallback: http.expectedStatuses({ min: 300, max: 399 }) });
}
