// Redirects: each hop is a request, and a chain is one call.
import http from "k6/http";
import { check } from "k6";

export const options = { vus: 1, iterations: 5, thresholds: { checks: ["rate==1"], http_reqs: ["count==25"] } };

export default function () {
  const shown = http.get(`${__ENV.BASE}/shop/redirect/2`);
  check(shown, { arrived: (r) => r.status === 200 });
  const held = http.get(`${__ENV.BASE}/shop/redirect/2`, { redirects: 0 });
  check(held, { held: (r) => r.status === 302 });
}
