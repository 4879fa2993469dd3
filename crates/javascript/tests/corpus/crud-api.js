import http from 'k6/http';
import { check, group, sleep } from 'k6';
import { Counter } from 'k6/metrics';

export const options = {
  vus: 1,
  iterations: 2,
  thresholds: {
    http_req_failed: ['rate<0.01'],
    http_req_duration: ['p(95)<30000', 'max<60000'],
    crocs_made: ['count==2'],
  },
};

const BASE_URL = __ENV.BASE;
const made = new Counter('crocs_made');

export default function () {
  const params = { headers: { Authorization: 'Bearer t0ken', 'Content-Type': 'application/json' } };
  let id;
  group('create', () => {
    const payload = { name: `Name ${__ITER}`, sex: 'M', date_of_birth: '2001-01-01' };
    const res = http.post(`${BASE_URL}/my/crocodiles/`, JSON.stringify(payload), params);
    if (check(res, { 'created': (r) => r.status === 201 })) {
      id = res.json('id');
      made.add(1);
    } else {
      console.error(`unable to create: ${res.status} ${res.body}`);
      return;
    }
  });
  group('update', () => {
    const res = http.patch(`${BASE_URL}/my/crocodiles/${id}/`, JSON.stringify({ name: 'New name' }), params);
    check(res, {
      'updated': (r) => r.status === 200,
      'has the new name': (r) => r.json().name === 'New name',
    });
  });
  group('replace', () => {
    http.put(`${BASE_URL}/my/crocodiles/${id}/`, JSON.stringify({ name: 'Other', legs: 4 }), params);
  });
  const gone = http.del(`${BASE_URL}/my/crocodiles/${id}/`, null, params);
  check(gone, { 'deleted': (r) => r.status === 204 && r.body === '' });
  sleep(0.05);
}
