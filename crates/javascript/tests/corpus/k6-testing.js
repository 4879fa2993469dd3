import { expect } from 'https://jslib.k6.io/k6-testing/0.5.0/index.js';
import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const response = http.get('BASE/pizza');
  expect(response.status).toBe(200);
  expect(response.json()).toEqual({ name: 'Margherita', toppings: ['basil', 'tomato'], price: 7.5 });
  expect(response.json('toppings')).toContain('basil');
  expect(response.json('price')).toBeGreaterThan(7);
  expect(response.json('name')).not.toBe('Funghi');
  expect(undefined).toBeUndefined();
  expect([1, 2, 3]).toHaveLength(3);
  expect(0.1 + 0.2).toBeCloseTo(0.3, 5);
  check(null, { 'expectations held': () => true });
  expect(response.status, 'status of pizza').toBe(500);
  http.get('BASE/not-reached');
}
