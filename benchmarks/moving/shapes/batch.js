// Several requests at once, with tags of their own.
import http from "k6/http";
import { check } from "k6";

export const options = { vus: 2, iterations: 10, thresholds: { "http_req_failed{kind:bad}": ["rate==1"], "http_req_failed{kind:good}": ["rate==0"] } };

export default function () {
  const answers = http.batch([
    ["GET", `${__ENV.BASE}/`, null, { tags: { kind: "good" } }],
    { method: "POST", url: `${__ENV.BASE}/_/echo`, body: "x", params: { tags: { kind: "good" } } },
    ["GET", `${__ENV.BASE}/_/status/500`, null, { tags: { kind: "bad" } }],
  ]);
  check(answers[0], { first: (r) => r.status === 200 });
  check(answers[1], { echoed: (r) => r.body.length > 0 });
  check(answers[2], { broken: (r) => r.status === 500 });
}
