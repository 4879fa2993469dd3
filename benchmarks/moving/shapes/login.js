// A form with a token out of a page, cookies that last for an iteration, JSON that is read.
import http from "k6/http";
import { check, group, sleep } from "k6";

export const options = {
  scenarios: { shop: { executor: "per-vu-iterations", vus: 3, iterations: 4 } },
  thresholds: { checks: ["rate==1"], "http_req_duration{name:items}": ["p(95)<5000"] },
};

export default function () {
  group("login", () => {
    const form = http.get(`${__ENV.BASE}/shop/login`);
    const token = form.html().find("input[name=token]").attr("value");
    const login = http.post(`${__ENV.BASE}/shop/login`, { user: "ann", password: "pw-ann", token: token });
    check(login, { "is in": (r) => r.status === 200 });
  });
  const items = http.get(`${__ENV.BASE}/shop/items`, { tags: { name: "items" } });
  sleep(0.01);
  check(items, {
    "has items": (r) => r.json("items.#") > 0,
    "has a first": (r) => r.json("items.0.id") === r.json().items[0].id,
    "has no unicorn": (r) => r.body.indexOf("unicorn") === -1,
  });
}
