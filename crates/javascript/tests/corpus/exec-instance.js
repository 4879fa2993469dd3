import exec from 'k6/execution';
import http from 'k6/http';
import { check } from 'k6';
export const options = { scenarios: { main: { executor: 'per-vu-iterations', vus: 1, iterations: 3, maxDuration: '20s' } } };
export default function () {
  const n = __ITER;
  http.get(`BASE/${n}`);
  check(exec, {
    instance: ({ instance: i }) => i.iterationsCompleted === n && i.iterationsInterrupted === 0 && i.vusActive === 1 && i.vusInitialized === 1 && i.currentTestRunDuration > 0,
    scenario: ({ scenario: s }) => s.name === 'main' && s.executor === 'per-vu-iterations' && s.iterationInTest === n && s.iterationInInstance === n && s.startTime > 1.6e12 && s.startTime <= Date.now() && s.progress >= 0 && s.progress <= 1,
    vu: ({ vu }) => vu.idInTest === 1 && vu.idInInstance === 1 && vu.iterationInInstance === n && vu.iterationInScenario === n,
    test: ({ test }) => test.options.scenarios.main.vus === 1 && typeof test.abort === 'function',
  });
}
