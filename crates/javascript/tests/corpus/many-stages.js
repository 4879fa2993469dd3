import http from 'k6/http';
import exec from 'k6/execution';
export const options = {
  scenarios: {
    spike: {
      executor: 'ramping-arrival-rate', startRate: 0, timeUnit: '1s', preAllocatedVUs: 4, maxVUs: 20, gracefulStop: '5s',
      stages: [
        { target: 20, duration: '1s' }, { target: 20, duration: '500ms' }, { target: 0, duration: '0s' },
        { target: 0, duration: '500ms' }, { target: 40, duration: '0' }, { target: 40, duration: '1s' },
      ],
      tags: { kind: 'spike' }, env: { PLACE: 'spike' }, exec: 'visit',
    },
    after: { executor: 'per-vu-iterations', vus: 2, iterations: 2, startTime: '1s', maxDuration: '10s', env: { PLACE: 'after' }, exec: 'visit' },
  },
  thresholds: { 'http_reqs{scenario:spike}': ['count>=56', 'count<=64'], 'http_reqs{kind:spike}': ['count>=56'], 'iterations{scenario:after}': ['count==4'] },
};
export function visit() { http.get(`BASE/${__ENV.PLACE}/${exec.scenario.name}`); }
