import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const value = {
    big: 12345678901234567890, tiny: 1e-7, neg: -0, nan: NaN, inf: Infinity, none: undefined, nil: null,
    date: new Date(Date.UTC(2020, 0, 2, 3, 4, 5, 6)), text: 'tab\t"quote" \u2028 é 😀 \ud800', list: [undefined, () => 1, Symbol('s')],
    nested: { toJSON() { return 'own'; } }, map: new Map([[1, 2]]), 2: 'two', 1: 'one',
  };
  http.post('BASE/json', JSON.stringify(value));
  http.post('BASE/pretty', JSON.stringify({ b: [1, { c: 2 }], a: [] }, null, 2));
  http.post('BASE/picked', JSON.stringify({ a: 1, secret: 'x', n: { secret: 'y', z: 2 } }, (k, v) => (k === 'secret' ? undefined : v)));
  http.post('BASE/keys', JSON.stringify({ a: 1, b: 2, c: 3 }, ['c', 'a']));
  check(null, {
    'revives': () => JSON.parse('{"d":"2020-01-01","n":[1,2]}', (k, v) => (k === 'd' ? v.length : v)).d === 10,
    'last of the same keys': () => JSON.parse('{"a":1,"a":2}').a === 2,
    'big numbers': () => JSON.parse('9007199254740993') === 9007199254740992,
    'proto is a field': () => Object.keys(JSON.parse('{"__proto__":1}')).length === 1,
    'no bigint': () => { try { JSON.stringify(1n); return false; } catch (e) { return e instanceof TypeError; } },
    'cycles throw': () => { const a = {}; a.a = a; try { JSON.stringify(a); return false; } catch (e) { return e instanceof TypeError; } },
  });
}
