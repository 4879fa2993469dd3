import http from 'k6/http';
import { check } from 'k6';

function* pages(last) {
  for (let page = 1; page <= last; page++) {
    const skip = yield http.get(`BASE/pages/${page}`);
    if (skip) page += skip;
  }
  return 'end';
}

class Range {
  static #made = 0;
  static { this.kind = 'range'; }
  constructor(from, to) { this.from = from; this.to = to; Range.#made++; }
  *[Symbol.iterator]() { for (let n = this.from; n <= this.to; n++) yield n; }
  static get made() { return Range.#made; }
}

async function* later(list) {
  for (const item of list) yield await http.asyncRequest('GET', `BASE/later/${item}`);
}

export default async function () {
  const walk = pages(5);
  const statuses = [walk.next().value.status, walk.next(2).value.status];
  const end = [walk.next(), walk.next()];
  const late = [];
  for await (const answer of later(['a', 'b'])) late.push(answer.url.slice(-1));
  const { groups: { year, month } } = /(?<year>\d{4})-(?<month>\d\d)/u.exec('on 2024-05-06');
  const found = [...'a1b22'.matchAll(/[a-z](\d+)/g)].map((m) => `${m.index}:${m[1]}`);
  outer: for (const a of [1, 2]) for (const b of [1, 2]) { if (b === 2) continue outer; found.push(a * b); }
  check(null, {
    'a generator over requests': () => statuses.join() === '200,200' && end[0].value.status === 200 && end[1].value === 'end' && end[1].done,
    'iterators': () => Math.max(...new Range(1, 4)) === 4 && [...new Range(2, 3)].join() === '2,3' && Range.made === 2 && Range.kind === 'range',
    'for await': () => late.join() === 'a,b',
    'named groups': () => year === '2024' && month === '05',
    'matchAll and labels': () => found.join() === '0:1,2:22,1,2',
    'a generator ends early': () => { const g = pages(9); return g.return('x').value === 'x' && g.next().done; },
    'Object.groupBy, findLast': () => JSON.stringify(Object.groupBy([1, 2, 3], (n) => (n % 2 ? 'odd' : 'even'))) === '{"odd":[1,3],"even":[2]}' && [1, 2, 3].findLast((n) => n < 3) === 2,
    'errors have causes': () => new Error('a', { cause: 'b' }).cause === 'b' && new AggregateError([1], 'all').errors[0] === 1,
  });
}
