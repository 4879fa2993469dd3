import http from 'k6/http';
import exec from 'k6/execution';

export const options = {
  scenarios: {
    constant_request_rate: {
      executor: 'constant-arrival-rate',
      rate: 600,
      timeUnit: '1m',
      duration: '2s',
      preAllocatedVUs: 8,
      maxVUs: 30,
    },
  },
  thresholds: { dropped_iterations: ['count<1'], iterations: ['count>=19'] },
};

let uses = 0; // VUs are reused: it counts the iterations of this one

export default function () {
  uses += 1;
  http.get('BASE/tick', { headers: { 'X-Uses': String(uses), 'X-Iteration': `${exec.vu.iterationInScenario + 1}`, 'X-Few': `${exec.vu.idInTest <= 8}` } });
}
