import http from 'k6/http';
import { check, group } from 'k6';
import { Counter } from 'k6/metrics';

const seen = new Counter('seen');

export const options = {
  vus: 1,
  iterations: 2,
  thresholds: {
    'http_reqs{group:::shop::cart}': ['count==2'],
    'http_reqs{group:::shop}': ['count==2'],
    'http_reqs{group:::cart}': ['count==2'],
    'http_reqs{group:}': ['count==2'],
    'checks{kind:price}': ['rate==0.5'],
    'checks{group:::shop::cart}': ['rate==0.5'],
    'seen{group:::shop::cart}': ['count==6'],
    'group_duration{group:::shop::cart}': ['max<30000'],
  },
};

export default function () {
  http.get('BASE/0');
  const total = group('shop', () => {
    http.get('BASE/1');
    return group('cart', function () {
      const answer = http.get('BASE/2');
      seen.add(3);
      check(answer, { 'is cheap': (r) => r.json('price') < 10 }, { kind: 'price' });
      check(answer, { 'is dear': (r) => r.json('price') > 10 }, { kind: 'price' });
      return answer.json('price');
    });
  });
  group('cart', () => { http.get(`BASE/3?total=${total}`); });
  try {
    group('breaks', () => { throw new Error('inside'); });
  } catch (e) {
    check(e.message, { 'error goes out of its group': (m) => m === 'inside' });
  }
}
