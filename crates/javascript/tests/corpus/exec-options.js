import exec from 'k6/execution';
import { check } from 'k6';
export const options = { scenarios: { api: { executor: 'per-vu-iterations', vus: 2, iterations: 2, tags: { team: 'x' }, env: { WHO: 'api' } } }, tags: { release: '1' } };
export default function () {
  check(exec, {
    executor: (e) => e.test.options.scenarios.api.executor === 'per-vu-iterations' && e.scenario.executor === 'per-vu-iterations',
    'options iterations': (e) => e.test.options.scenarios.api.iterations === 2,
    name: (e) => e.scenario.name === 'api',
    tags: (e) => e.vu.metrics.tags.team === 'x' && e.vu.tags.scenario === 'api',
    env: () => __ENV.WHO === 'api',
    'iteration of the vu': (e) => e.vu.iterationInScenario === __ITER && e.vu.iterationInInstance >= e.vu.iterationInScenario,
    vus: (e) => e.instance.vusInitialized >= 1 && e.instance.vusActive >= 1 && e.vu.idInInstance === __VU,
    started: (e) => Math.abs(Date.now() - e.scenario.startTime) < 60000 && e.scenario.progress >= 0 && e.scenario.progress <= 1,
  });
}
