import exec from 'k6/execution';
import http from 'k6/http';

export const options = { vus: 1, iterations: 100 };

export default function () {
  const res = http.get('BASE/health');
  if (res.status !== 200) {
    exec.test.abort('the target is down');
  }
}

export function teardown() {
  http.get('BASE/teardown');
}
