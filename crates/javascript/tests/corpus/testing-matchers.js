import http from 'k6/http';
import { expect } from 'https://jslib.k6.io/k6-testing/0.5.0/index.js';
import { check } from 'k6';
export const options = { iterations: 1 };
export default function () {
  const res = http.get('BASE/j');
  expect(res.status).toBe(200);
  expect(res.json()).toEqual({ a: [1, { b: 2 }], s: 'text' });
  expect(res.json('a')).toHaveLength(2);
  expect(res.json('s')).toContain('ex');
  expect(res.json('s')).not.toBe('other');
  expect(0.1 + 0.2).toBeCloseTo(0.3, 5);
  expect(res.json('a.0')).toBeGreaterThan(0);
  expect(null).toBeNull();
  expect(undefined).toBeUndefined();
  expect(res).toHaveProperty('status');
  expect([]).toBeInstanceOf(Array);
  let failed = false;
  check(1, { 'all passed': () => true });
  http.get('BASE/end');
}
