import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const requests = {
    'front page': 'BASE/',
    'features page': { method: 'GET', url: 'BASE/features', params: { headers: { 'User-Agent': 'k6 test' } } },
    missing: ['GET', 'BASE/missing'],
  };
  const responses = http.batch(requests);
  check(responses['front page'], { 'front page status was 200': (res) => res.status === 200 });
  check(responses, {
    'by their names': (r) => Object.keys(r).sort().join() === 'features page,front page,missing',
    'a missing one is 404': (r) => r.missing.status === 404 && r['features page'].json('ua') === 'yes',
  });
  // No more than six at once go to one host.
  const many = http.batch(Array.from({ length: 13 }, (_, i) => `BASE/many/${i}`));
  check(many, { 'all thirteen': (m) => m.every((r, i) => r.url.endsWith(`/${i}`) && r.status === 200) });
}
