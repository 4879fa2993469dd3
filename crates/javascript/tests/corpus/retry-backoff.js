import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const retries = new Counter('retries');
const attempts = new Trend('attempts');

function withRetry(fn, { times = 5, base = 0.02 } = {}) {
  let last;
  for (let attempt = 1; attempt <= times; attempt++) {
    last = fn(attempt);
    if (last.status < 500) {
      attempts.add(attempt);
      return last;
    }
    retries.add(1, { status: String(last.status) });
    sleep(base * 2 ** (attempt - 1));
  }
  return last;
}

export const options = {
  thresholds: {
    'retries{status:503}': ['count==2'],
    http_req_failed: [{ threshold: 'rate<0.7', abortOnFail: false }],
  },
};

export default function () {
  const res = withRetry((attempt) => http.get('BASE/flaky', { headers: { 'X-Attempt': `${attempt}` }, responseCallback: null }));
  check(res, { 'at last': (r) => r.status === 200 });
}
