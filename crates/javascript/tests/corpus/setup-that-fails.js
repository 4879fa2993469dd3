import http from 'k6/http';
import { fail } from 'k6';
export const options = { vus: 2, iterations: 4 };
export function setup() {
  const answer = http.post('BASE/login', { user: 'ann' });
  if (answer.status !== 200) fail(`no login: ${answer.status}`);
  return { token: answer.json('token') };
}
export default function () { http.get('BASE/never'); }
export function teardown() { http.get('BASE/never-either'); }
