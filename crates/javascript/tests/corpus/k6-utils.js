import http from 'k6/http';
import { check } from 'k6';
import { uuidv4, randomIntBetween, randomItem, randomString, findBetween, getCurrentStageIndex, tagWithCurrentStageIndex, normalDistributionStages } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';

export const options = {
  iterations: 20,
};

const browsers = ['firefox', 'safari', 'chrome'];

export default function () {
  const id = uuidv4();
  const n = randomIntBetween(1, 3);
  const browser = randomItem(browsers);
  const word = randomString(5, 'ab');
  check(null, {
    'uuid of version 4': () => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id),
    'between, both included': () => Number.isInteger(n) && n >= 1 && n <= 3,
    'one of the list': () => browsers.includes(browser),
    'of these letters': () => /^[ab]{5}$/.test(word),
    'between two texts': () => findBetween('<b>bold</b>', '<b>', '</b>') === 'bold',
    'all between': () => findBetween('[1][2]', '[', ']', true).join() === '1,2',
    'curve': () => normalDistributionStages(10, 60, 5).length >= 5 && typeof getCurrentStageIndex === 'function' && typeof tagWithCurrentStageIndex === 'function',
  });
  http.get(`${__ENV.BASE}/r/${n}/${browser}`);
}
