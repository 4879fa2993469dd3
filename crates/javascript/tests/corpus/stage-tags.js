import { uuidv4, randomIntBetween, randomItem, randomString, findBetween, normalDistributionStages, getCurrentStageIndex, tagWithCurrentStageIndex } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
export const options = { scenarios: { s: { executor: 'ramping-vus', startVUs: 1, stages: [{ duration: '400ms', target: 1 }, { duration: '400ms', target: 1 }], gracefulStop: '2s' } } };
let once = false;
export default function () {
  tagWithCurrentStageIndex();
  const i = getCurrentStageIndex();
  http.get('BASE/x?d=' + (i === Number(exec.vu.metrics.tags.stage)), { tags: { name: 'x' } });
  if (once) return; once = true;
  check(null, {
    uuid: () => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuidv4()),
    int: () => { for (let n = 0; n < 200; n++) { const v = randomIntBetween(2, 4); if (v < 2 || v > 4 || v % 1) return false; } return true; },
    item: () => [1, 2].includes(randomItem([1, 2])),
    string: () => /^[a-z]{8}$/.test(randomString(8)) && /^[01]{20}$/.test(randomString(20, '01')),
    between: () => findBetween('<a>1</a><a>2</a>', '<a>', '</a>') === '1' && findBetween('<a>1</a><a>2</a>', '<a>', '</a>', true).join() === '1,2',
    stages: () => normalDistributionStages(10, 60, 4).length === 4,
  });
}
