// Users by a rate: as many iterations as were due.
import http from "k6/http";
import { check } from "k6";

export const options = {
  scenarios: { come: { executor: "constant-arrival-rate", rate: 50, timeUnit: "1s", duration: "2s", preAllocatedVUs: 20 } },
  thresholds: { checks: ["rate>0.99"] },
};

export default function () {
  const r = http.get(`${__ENV.BASE}/`);
  check(r, { "200": (r) => r.status === 200 });
}
