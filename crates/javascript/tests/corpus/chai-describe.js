import chai, { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';
import http from 'k6/http';
export const options = { iterations: 1, thresholds: { checks: [{ threshold: 'rate == 1.00' }] } };
chai.config.aggregateChecks = false;
export default function () {
  const ok = describe('fetch', () => {
    const res = http.get('BASE/list');
    expect(res.status, 'response status').to.equal(200);
    expect(res).to.have.validJsonBody();
    expect(res.json(), 'items').to.be.an('array').that.has.lengthOf(2);
    expect(res.json()[0], 'first').to.include.keys('id', 'name');
    expect(res.json()[0].name).to.match(/^A/);
    expect(res.json()[1].id).to.be.above(1).and.below(3);
  });
  const bad = describe('breaks', () => {
    expect(1, 'one').to.equal(2);
    http.get('BASE/not-reached');
  });
  http.get(`BASE/end/${ok}/${bad}`);
}
