import http from 'k6/http';
import { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';

export const options = { iterations: 1, thresholds: { checks: ['rate>0.5'] } };

export default function testSuite() {
  describe('Basic API test', () => {
    const response = http.get('BASE/api/crocodiles');
    expect(response.status, 'API status code').to.equal(200);
    expect(response).to.have.validJsonBody();
    expect(response.json(), 'croc list').to.be.an('array');
    expect(response.json().length, 'number of crocs').to.be.above(1);
    expect(response.json()[0], 'first').to.have.property('name').that.includes('Bert');
    expect({ a: [1, { b: 2 }] }).to.deep.equal({ a: [1, { b: 2 }] });
  });
  describe('A test that fails', () => {
    expect(1, 'one').to.equal(2);
    http.get('BASE/not-reached');
  });
  describe('The next goes on', () => {
    expect([3, 1], 'list').to.include(3).and.to.have.lengthOf(2);
  });
}
