// Metrics of the script's own, tags on them, thresholds on both; one does not hold.
import { check } from "k6";
import http from "k6/http";
import { Counter, Gauge, Rate, Trend } from "k6/metrics";

const errors = new Counter("errors"), level = new Gauge("level"), odd = new Rate("odd"), size = new Trend("size");

export const options = {
  vus: 1,
  iterations: 10,
  thresholds: { errors: ["count<5"], "errors{kind:late}": ["count<=5"], odd: ["rate==0.5"], size: ["avg==4.5", "max<=9"], level: ["value==9"] },
};

export default function () {
  http.get(`${__ENV.BASE}/`);
  errors.add(1, { kind: __ITER % 2 === 0 ? "late" : "lost" });
  level.add(__ITER);
  odd.add(__ITER % 2 === 1);
  size.add(__ITER);
  check(__ITER, { "below 5": (n) => n < 5 });
}
