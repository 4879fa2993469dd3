import http from 'k6/http';
import { SharedArray } from 'k6/data';
import { vu } from 'k6/execution';

const users = new SharedArray('users', () => open('./data/users.txt').split(/\r?\n/).filter(Boolean).map((line) => {
  const [name, password] = line.split(';').map((s) => s.trim());
  return { name, password };
}));

export const options = {
  scenarios: { login: { executor: 'per-vu-iterations', vus: users.length, iterations: 1, maxDuration: '1h30m' } },
};

export default function () {
  // VU identifiers are one-based, arrays are zero-based.
  const { name, password } = users[vu.idInTest - 1];
  http.post('BASE/login', { name, password });
}
