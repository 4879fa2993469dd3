import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import exec from 'k6/execution';
const c = new Counter('c'); const g = new Gauge('g'); const r = new Rate('r'); const t = new Trend('t', true); const u = new Trend('u');
export const options = {
  iterations: 5,
  thresholds: { 'c{kind:a}': ['count==2', 'rate>=0'], g: ['value==5'], 'r{region:eu}': [{ threshold: 'rate==0.6', abortOnFail: false }], t: ['avg==300', 'med>299', 'med<301', 'p(50)<301', 'max==500', 'min==100'], u: ['p(100)==5'], 'u{kind:none}': ['max<1'] },
};
export default function () {
  const n = exec.scenario.iterationInTest;
  exec.vu.metrics.tags.region = 'eu';
  c.add(1, { kind: n % 2 ? 'a' : 'b' });
  g.add(n + 1); r.add(n > 1); t.add((n + 1) * 100); u.add(n + 1, { kind: 'x' });
}
