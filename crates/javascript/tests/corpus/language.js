import { check } from 'k6';
export const options = { ext: { loadimpact: { projectID: 1 } }, cloud: { name: 'x' }, summaryTimeUnit: 'ms', noUsageReport: true, iterations: 1 };
const top = await Promise.resolve(5);
export default function () {
  const m = 'id=42; name=Ann'.match(/id=(?<id>\d+); name=(?<name>\w+)/);
  class A { #x = 1; static s = 2; get x() { return this.#x; } static #p() { return 3; } static q() { return A.#p(); } }
  const { a = 1, ...rest } = { b: 2, c: 3 };
  check(null, {
    'top await': () => top === 5,
    groups: () => m.groups.id === '42' && m.groups.name === 'Ann',
    lookbehind: () => 'price: $42'.replace(/(?<=\$)\d+/, 'x') === 'price: $x',
    private: () => new A().x === 1 && A.s === 2 && A.q() === 3,
    destructuring: () => a === 1 && Object.keys(rest).join() === 'b,c',
    'nullish and chains': () => (null ?? 'd') === 'd' && ({}).x?.y === undefined,
    'array methods': () => [3, 1, 2].toSorted().join() === '1,2,3' && [1, [2, [3]]].flat(Infinity).length === 3 && [1, 2, 3].at(-1) === 3,
    strings: () => 'a-b-c'.replaceAll('-', '') === 'abc' && 'x'.padStart(3, '0') === '00x' && ' t '.trimEnd() === ' t',
    entries: () => JSON.stringify(Object.fromEntries(Object.entries({ z: 1 }))) === '{"z":1}',
    'no globals of browsers or node': () => typeof window === 'undefined' && typeof process === 'undefined' && typeof Buffer === 'undefined' && typeof atob === 'undefined' && typeof performance === 'undefined',
    date: () => new Date('2024-02-30T00:00:00Z').toString() === 'Invalid Date' || true,
    'numeric separators': () => 1_000 === 1000 && 2n ** 64n === 18446744073709551616n,
    json: () => JSON.stringify({ d: new Date(0), u: undefined, n: NaN, nested: [undefined] }) === '{"d":"1970-01-01T00:00:00.000Z","n":null,"nested":[null]}',
  });
}
