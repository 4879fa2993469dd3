import http from 'k6/http';
import exec from 'k6/execution';
export const options = {
  scenarios: {
    spike: { executor: 'ramping-arrival-rate', startRate: 0, timeUnit: '1s', preAllocatedVUs: 5, maxVUs: 20, stages: [{ target: 40, duration: '1s' }, { target: 40, duration: '500ms' }, { target: 0, duration: '0s' }], exec: 'spike', gracefulStop: '5s' },
    steady: { executor: 'constant-arrival-rate', rate: 600, timeUnit: '1m', duration: '1s', preAllocatedVUs: 2, exec: 'steady', startTime: '200ms' },
    each: { executor: 'shared-iterations', vus: 2, iterations: 3, exec: 'each', maxDuration: '20s' },
  },
  thresholds: { 'iterations{scenario:steady}': ['count==10'], dropped_iterations: ['count<5'] },
};
export function spike() { http.get('BASE/spike'); }
export function steady() { http.get('BASE/steady'); }
export const each = () => { http.get(`BASE/each/${exec.scenario.iterationInTest}`); };
