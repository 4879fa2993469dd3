import http from 'k6/http';
import { check } from 'k6';
import Base, { both } from './lib/circle-a.js';
import { make } from './lib/circle-b.js';
import * as old from './lib/old-style.cjs.js';
import again, { short } from './lib/old-style.cjs.js';
const config = JSON.parse(open('./data/products.json'));
export const options = { iterations: 2, vus: 1 };
const Item = make();
export default function () {
  http.get(`BASE${new Item(config.items[0].id).path()}`);
  check(null, {
    'circles are closed': () => both() === 'aba' && new Item(1) instanceof Base && new Base(2).path() === '/base/2',
    'CommonJS': () => short('x') === '2d711642' && old.short === short && again.short === short && again.calls() === __ITER + 1,
  });
}
