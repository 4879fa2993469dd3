import k6, { sleep as pause } from 'k6';
import * as all from 'k6/http';
import http, { get, post, CookieJar } from 'k6/http';
import metrics, { Counter as Count } from 'k6/metrics';
import encoding, { b64encode } from 'k6/encoding';
import execution, { vu, scenario } from 'k6/execution';
import data, { SharedArray } from 'k6/data';
import * as nothing from './lib/helpers.js';

const list = new data.SharedArray('list', () => ['a', 'b', 'c']);
const hits = new metrics.Counter('hits');
const same = new Count('more_hits');

export let options = { vus: 1, iterations: 1 };

export default () => {
  get('BASE/get');
  post('BASE/post', 'text');
  all.default.get('BASE/default');
  all.get('BASE/all');
  http.put('BASE/put', 'x');
  const { check, group } = k6;
  hits.add(1);
  same.add(2);
  const seen = [];
  for (const item of list) seen.push(item);
  check(null, {
    'both names are one': () => get === http.get && all.get === get && encoding.b64encode === b64encode && new CookieJar() instanceof all.CookieJar,
    'execution by name': () => vu.idInTest === execution.vu.idInTest && scenario.name === 'default' && scenario.executor === 'shared-iterations',
    'SharedArray as a list': () => seen.join('') === 'abc' && list.length === 3 && list.map((x) => x + x).join() === 'aa,bb,cc' && list.indexOf('b') === 1 && list.slice(1).join() === 'b,c' && list.find((x) => x > 'a') === 'b' && SharedArray === data.SharedArray,
    'namespaces are objects': () => typeof nothing === 'object',
  });
  group('g', () => pause(0.01));
};
