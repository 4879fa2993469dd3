import exec from 'k6/execution';
import http from 'k6/http';
import { check } from 'k6';

export const options = {
  scenarios: { flow: { executor: 'shared-iterations', vus: 1, iterations: 3 } },
  thresholds: { 'http_reqs{user:vip}': ['count==2'], 'http_reqs{flow_step:one}': ['count==3'] },
};

export default function () {
  check(exec, {
    'scenario': (e) => e.scenario.name === 'flow' && e.scenario.executor === 'shared-iterations',
    'iterations': (e) => e.scenario.iterationInTest === __ITER && e.vu.iterationInScenario === __ITER && e.vu.iterationInInstance === __ITER,
    'vu': (e) => e.vu.idInTest === 1 && e.vu.idInInstance === 1 && e.vu.idInTest === __VU,
    'instance': (e) => e.instance.vusActive === 1 && e.instance.vusInitialized === 1 && e.instance.iterationsCompleted === __ITER,
    'progress': (e) => e.scenario.progress >= 0 && e.scenario.progress <= 1,
    'times': (e) => Math.abs(Date.now() - e.scenario.startTime) < 60000 && e.instance.currentTestRunDuration >= 0,
    'options': (e) => e.test.options.scenarios.flow.iterations === 3,
  });
  exec.vu.metrics.tags.flow_step = 'one';
  http.get('BASE/one');
  delete exec.vu.metrics.tags.flow_step;
  if (__ITER > 0) exec.vu.tags.user = 'vip';
  http.get('BASE/two', { tags: { a: 'b' } });
  delete exec.vu.tags.user;
}
