import http from 'k6/http';
import { sleep } from 'k6';
import exec from 'k6/execution';
export const options = {
  scenarios: {
    ramp: { executor: 'ramping-vus', startVUs: 1, stages: [{ duration: '1s', target: 3 }, { duration: '500ms', target: 3 }, { duration: '500ms', target: 0 }], gracefulRampDown: '0s', gracefulStop: '0s' },
  },
};
export default function () {
  if (exec.vu.iterationInScenario === 0) http.get(`BASE/first/${exec.vu.idInTest}`);
  sleep(0.1);
}
