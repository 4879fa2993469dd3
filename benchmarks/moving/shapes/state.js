// What is whose: setup's data, variables of a user, shared lists, numbers of users and iterations.
import http from "k6/http";
import { check } from "k6";
import { SharedArray } from "k6/data";
import exec from "k6/execution";

const words = new SharedArray("words", function () { return ["lamp", "book", "clock"]; });
let mine = 0;

export const options = {
  scenarios: {
    a: { executor: "per-vu-iterations", vus: 3, iterations: 5, exec: "a" },
    b: { executor: "shared-iterations", vus: 2, iterations: 6, exec: "b" },
  },
  thresholds: { checks: ["rate==1"] },
};

export function setup() {
  const r = http.get(`${__ENV.BASE}/`);
  return { status: r.status, list: [1, 2] };
}

export function a(data) {
  mine++;
  data.list.push(mine);
  http.get(`${__ENV.BASE}/shop/items?q=${words[mine % words.length]}`, { tags: { name: "search" } });
  check(data, { "setup was there": (d) => d.status === 200, "a user's own": (d) => mine === __ITER + 1 });
}

export function b() {
  http.put(`${__ENV.BASE}/_/echo`, JSON.stringify({ vu: exec.vu.idInTest }), { headers: { "Content-Type": "application/json" } });
  check(exec.vu.idInTest, { "has a number": (n) => n >= 1 });
}

export function teardown(data) {
  http.del(`${__ENV.BASE}/_/echo`);
}
