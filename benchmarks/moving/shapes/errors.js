// What ends iterations: fail, an error, a target that is not there. k6 is green all the same where no threshold is about it.
import http from "k6/http";
import { check, fail } from "k6";

export const options = { vus: 1, iterations: 6 };

export default function () {
  const r = http.get(`${__ENV.BASE}/_/status/503`);
  if (!check(r, { "is there": (r) => r.status === 200 }) && __ITER % 2 === 0) {
    fail("not there");
  }
  http.get("http://127.0.0.1:1/");
}
