import { check } from 'k6';
import http from 'k6/http';
export const options = { iterations: 1 };
class Money { #cents; constructor(c) { this.#cents = c; } toJSON() { return { amount: (this.#cents / 100).toFixed(2) }; } get [Symbol.toStringTag]() { return 'Money'; } static of(...c) { return c.map((x) => new this(x)); } has(o) { return #cents in o; } }
class Euro extends Money { toString() { return `€${super.toString()}`; } }
const sum = (a, b = 2, ...c) => [a, b, ...c].reduce((x, y) => x + y, 0);
var hoisted = typeof later; function later() {}
export default function () {
  const text = 'naïve café ☕️ 👩‍👩‍👧';
  const list = [5, 1, 10, 2];
  const checks = {
    'toJSON, toFixed': () => JSON.stringify({ m: new Money(1005), n: 1.005.toFixed(2), d: -0, i: Infinity }) === '{"m":{"amount":"10.05"},"n":"1.00","d":0,"i":null}',
    'string tags and super': () => String(new Euro(1)) === '€[object Money]' && Euro.of(1, 2)[1] instanceof Euro && new Euro(3).has(new Money(2)),
    'defaults and rest': () => sum(1) === 3 && sum(1, undefined, 3) === 6 && sum.length === 1,
    'code points': () => [...text].length === 19 && text.length === 22 && text.normalize('NFD').length > text.length && /\p{L}+/u.exec(text)[0] === 'naïve',
    'sort is by text': () => list.toSorted().join() === '1,10,2,5' && list.toSorted((a, b) => a - b).join() === '1,2,5,10' && list.join() === '5,1,10,2',
    'sticky, flags, replace by function': () => 'aXbX'.replace(/x/gi, (m, at) => at) === 'a1b3' && /a/y.sticky && 'x-1'.replace(/(?<n>\d)/, '[$<n>]') === 'x-[1]',
    'dates': () => new Date(2024, 0, 31, 12).getMonth() === 0 && new Date('2024-03-10T10:00:00+02:00').getTime() === 1710057600000 && Date.parse('2024-03-10') === 1710028800000 && new Date(NaN).getTime() !== 0 && isNaN(Date.parse('nonsense')),
    'numbers': () => (0.1 + 0.2).toString() === '0.30000000000000004' && (1e21).toString() === '1e+21' && (255).toString(16) === 'ff' && parseInt('08') === 8 && Number('0x1f') === 31 && Number('') === 0 && Number.isNaN(Number('1,5')) && (1234.5678).toPrecision(6) === '1234.57',
    'bigint': () => 10n ** 20n === 100000000000000000000n && BigInt.asUintN(8, 257n) === 1n && typeof 1n === 'bigint',
    'maps keep order': () => JSON.stringify([...new Map([['b', 1], ['a', 2]])]) === '[["b",1],["a",2]]' && Object.keys({ b: 1, 2: 1, a: 1, 1: 1 }).join() === '1,2,b,a',
    'getters, setters, computed': () => { const k = 'x'; const o = { _v: 1, get [k]() { return this._v; }, set [k](v) { this._v = v * 2; } }; o.x = 4; return o.x === 8 && Object.getOwnPropertyDescriptor(o, 'x').get !== undefined; },
    'frozen in strict mode': () => { try { Object.freeze({ a: 1 }).a = 2; return false; } catch (e) { return e instanceof TypeError; } },
    'closures in loops': () => { const f = []; for (let i = 0; i < 3; i++) f.push(() => i); return f.map((g) => g()).join() === '0,1,2'; },
    'this of modules': () => typeof globalThis === 'object' && (function () { return this; })() === undefined,
    'hoisting and typeof': () => hoisted === 'function' && typeof undeclared === 'undefined',
    'switch, do, comma': () => { let s = ''; switch (3) { case 1: s += 1; case 3: s += 3; case 4: s += 4; break; default: s += 'd'; } do { s += '!'; } while (s.length < 4); return s === '34!!'; },
    'finally wins': () => (() => { try { throw new Error(); } catch { return 1; } finally { return 2; } })() === 2,
    'spread of iterables': () => Math.max(...new Set([1, 9, 3])) === 9 && [...'ab', ...[1]].join() === 'a,b,1' && JSON.stringify({ ...[7, 8], ...null }) === '{"0":7,"1":8}',
    'array holes': () => [1, , 3].length === 3 && !(1 in [1, , 3]) && Array.from({ length: 3 }, (_, i) => i * i).join() === '0,1,4' && Array(3).fill(0).join('') === '000',
    'typed arrays': () => new Uint8Array([1, 2, 300])[2] === 44 && new Float64Array(2).length === 2 && new DataView(new Uint8Array([0, 1]).buffer).getUint16(0) === 1,
    'encode': () => encodeURIComponent("a b&c=d/é'()") === "a%20b%26c%3Dd%2F%C3%A9'()" && encodeURI('http://x/a b?q=é') === 'http://x/a%20b?q=%C3%A9' && decodeURIComponent('%E2%82%AC') === '€',
    'names of errors': () => ['null.x', 'undeclared', 'JSON.parse("{")', '[].reduce((a) => a)', '"x".repeat(-1)', 'decodeURIComponent("%")'].map((s) => { try { new Function(`return ${s}`)(); } catch (e) { return e.name; } }).join() === 'TypeError,ReferenceError,SyntaxError,TypeError,RangeError,URIError',
    'weekday by Intl': () => typeof Intl === 'undefined' || typeof Intl.DateTimeFormat === 'function',
  };
  for (const [name, test] of Object.entries(checks)) check(null, { [name]: test });
  http.get('BASE/end');
}
