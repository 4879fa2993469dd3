import { SharedArray } from 'k6/data';
import { check } from 'k6';
const data = new SharedArray('users', function () { return JSON.parse('[{"n":"a","k":[1]},{"n":"b","k":[2]},{"n":"c","k":[3]}]'); });
let thrown = '';
export const options = { iterations: 1 };
export default function () {
  const one = data[1];
  try { one.n = 'z'; } catch (e) { thrown = e.constructor.name; }
  let names = '';
  for (const u of data) names += u.n;
  check(data, {
    length: (d) => d.length === 3,
    'items are frozen': () => data[1].n === 'b' && thrown === 'TypeError',
    'for of': () => names === 'abc',
    'map filter': (d) => d.map((u) => u.n).join('') === 'abc' && d.filter((u) => u.k[0] > 1).length === 2,
    forEach: (d) => { let s = 0; d.forEach((u) => { s += u.k[0]; }); return s === 6; },
    'reduce find some': (d) => d.reduce((a, u) => a + u.k[0], 0) === 6 && d.find((u) => u.n === 'c').k[0] === 3 && d.some((u) => u.n === 'b'),
    'out of range': (d) => d[9] === undefined,
    'cannot be set': (d) => { try { d[0] = {}; } catch (e) { return e instanceof TypeError; } return d[0].n === 'a'; },
    'random item': (d) => 'abc'.includes(d[Math.floor(Math.random() * d.length)].n),
  });
}
