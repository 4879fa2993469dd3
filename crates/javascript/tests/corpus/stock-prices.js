import http from 'k6/http';
import { check, sleep, group } from 'k6';
import { Trend, Rate } from 'k6/metrics';

const orderLatency = new Trend('order_latency', true);
const orderErrors = new Rate('order_errors');
const SYMBOLS = ['AAPL', 'MSFT', 'GOOG'];

export const options = {
  scenarios: {
    quotes: { executor: 'constant-arrival-rate', rate: 15, duration: '1s', preAllocatedVUs: 5, maxVUs: 40, exec: 'quotes' },
    orders: { executor: 'per-vu-iterations', vus: 2, iterations: 3, startTime: '100ms', exec: 'orders' },
  },
  thresholds: {
    order_latency: ['p(95)<30000'],
    order_errors: ['rate<0.05'],
    'http_req_duration{name:quote}': ['p(99)<30000'],
    'group_duration{group:::order}': ['p(95)<30000'],
  },
};

export function quotes() {
  const symbol = SYMBOLS[Math.floor(Math.random() * SYMBOLS.length)];
  const res = http.get(`${__ENV.BASE}/quotes/${symbol}`, { tags: { name: 'quote', symbol } });
  check(res, { 'has a price': (r) => typeof r.json('price') === 'number' });
}

export function orders() {
  group('order', () => {
    const order = { symbol: SYMBOLS[__ITER % 3], qty: (__ITER + 1) * 10, limit: Number((99.999 + __ITER).toFixed(2)) };
    const res = http.post(`${__ENV.BASE}/orders`, JSON.stringify(order), { headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `${__VU}-${__ITER}` } });
    orderLatency.add(res.timings.duration);
    orderErrors.add(res.status !== 201);
    sleep(0.02);
  });
}
