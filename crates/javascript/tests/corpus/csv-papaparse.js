import http from 'k6/http';
import { SharedArray } from 'k6/data';
import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
import { check } from 'k6';

const csvData = new SharedArray('users', function () {
  return papaparse.parse(open('./data/users.csv'), { header: true, skipEmptyLines: true }).data;
});

export const options = { vus: 1, iterations: csvData.length };

export default function () {
  const user = csvData[__ITER % csvData.length];
  const params = { username: user.username, note: user['note'] };
  const res = http.post(`${__ENV.BASE}/login`, JSON.stringify(params), { headers: { 'Content-Type': 'application/json' } });
  check(res, { 'status is 200': (r) => r.status == 200 });
}
