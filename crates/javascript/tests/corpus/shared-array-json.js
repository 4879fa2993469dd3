import http from 'k6/http';
import { check } from 'k6';
import { SharedArray } from 'k6/data';
import { scenario } from 'k6/execution';

const data = new SharedArray('products', () => JSON.parse(open('./data/products.json')).items);

export const options = {
  scenarios: {
    use_all_the_data: { executor: 'shared-iterations', vus: 3, iterations: data.length, maxDuration: '1m' },
  },
};

export default function () {
  // Each product once, whoever takes it.
  const product = data[scenario.iterationInTest];
  http.get(`${__ENV.BASE}/products/${product.id}?q=${encodeURIComponent(product.name)}`);
  let names = [];
  for (const one of data) names.push(one.name);
  check(names, {
    'all are there': (n) => n.length === 5 && n[4] === 'Öl & Essig',
    'a copy each': () => data[0] !== data[0] || data[0].id === 11,
  });
  check(null, { 'cannot be changed': () => {
    try { data[0].id = 99; } catch (e) { return e instanceof TypeError; }
    return data[0].id === 11;
  } });
}
