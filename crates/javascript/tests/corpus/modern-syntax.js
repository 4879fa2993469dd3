import http from 'k6/http';
import { check } from 'k6';

const config = { retry: { times: 0 }, 'a-b': null };
const tag = (strings, ...values) => strings.raw.map((s, i) => s + (i < values.length ? `<${values[i]}>` : '')).join('');

export default function () {
  const results = {};
  outer: for (let i = 0; i < 5; i++) {
    for (const j of [1, 2, 3]) {
      if (j === 2) continue outer;
      if (i === 3) break outer;
      results[`${i}${j}`] = i * j;
    }
  }
  const log = [];
  const watched = new Proxy({ x: 1 }, {
    get: (target, key) => { log.push(key); return Reflect.get(target, key) ?? 'none'; },
  });
  const map = new Map([['b', 2], ['a', 1]]);
  const weak = new WeakMap();
  weak.set(map, 'seen');
  let n = null;
  n ??= 5;
  n ||= 6;
  n &&= n + 1;
  const { a = 10, ...others } = { b: 2, c: 3 };
  const [first, , third = 'd', ...rest] = 'xyz!?';
  check(null, {
    'labels': () => JSON.stringify(results) === '{"11":1,"21":2,"01":0}',
    'optional chaining': () => config?.retry?.times === 0 && config.none?.deep.er === undefined && config.fn?.() === undefined,
    'nullish': () => (config.retry.times ?? 3) === 0 && (config['a-b'] ?? 'x') === 'x',
    'proxy': () => watched.x + watched.y === '1none' && log.join() === 'x,y',
    'map and weak map': () => [...map.keys()].join() === 'b,a' && weak.get(map) === 'seen',
    'assignments': () => n === 6,
    'destructuring': () => a === 10 && JSON.stringify(others) === '{"b":2,"c":3}' && `${first}${third}${rest}` === 'xz!,?',
    'tagged template': () => tag`a\n${1}b${'c'}` === 'a\\n<1>b<c>',
    'bigint': () => (2n ** 64n).toString() === '18446744073709551616' && BigInt('9007199254740993') + 2n === 9007199254740995n,
    'exponent, numeric separators': () => 2 ** 10 === 1024 && 1_000_000 === 1e6,
    'comma, void, in, delete': () => (1, 2) === 2 && void 0 === undefined && 'retry' in config && delete { q: 1 }.q,
    'at, flat, fromEntries': () => [1, [2, [3]]].flat(Infinity).at(-1) === 3 && Object.fromEntries([['k', 1]]).k === 1,
  });
  http.get(`${__ENV.BASE}/${Object.entries(results).map(([k, v]) => `${k}-${v}`).join('_')}`);
}
