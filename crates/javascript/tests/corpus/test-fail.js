import exec from 'k6/execution';
import http from 'k6/http';

export const options = { iterations: 3 };

export default function () {
  const res = http.get('BASE/price');
  if (res.json('price') < 0) {
    exec.test.fail('a negative price');
  }
  http.get('BASE/next');
}
