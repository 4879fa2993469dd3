import http from 'k6/http';

export const options = {
  scenarios: {
    slow: { executor: 'constant-arrival-rate', rate: 20, timeUnit: '1s', duration: '1s', preAllocatedVUs: 1, maxVUs: 1, gracefulStop: '2s' },
  },
  thresholds: { dropped_iterations: ['count<5'] },
};

export default function () {
  http.get('BASE/slow');
}
