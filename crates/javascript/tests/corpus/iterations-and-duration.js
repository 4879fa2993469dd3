import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  scenarios: {
    each: { executor: 'per-vu-iterations', vus: 2, iterations: 50, maxDuration: '600ms', gracefulStop: '0s' },
    shared: { executor: 'shared-iterations', vus: 2, iterations: 4, startTime: '200ms', exec: 'quick' },
  },
};

export default function () {
  http.get('BASE/each');
  sleep(0.15);
}

export function quick() {
  http.get('BASE/shared');
}
