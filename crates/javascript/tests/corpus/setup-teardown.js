import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 2, iterations: 4, setupTimeout: '10s', teardownTimeout: '10s' };

export function setup() {
  const res = http.get('BASE/prepare');
  return { data: res.json(), when: new Date(0), nothing: undefined, list: [1, undefined, 3] };
}

export default function (data) {
  check(data, {
    'is a copy of JSON': (d) => d.when === '1970-01-01T00:00:00.000Z' && !('nothing' in d) && d.list[1] === null,
    'is not what another VU changed': (d) => d.data.count === 7,
  });
  data.data.count += 100;
  http.get(`${__ENV.BASE}/work?token=${data.data.token}`);
}

export function teardown(data) {
  http.post('BASE/clean', JSON.stringify(data.data));
}
