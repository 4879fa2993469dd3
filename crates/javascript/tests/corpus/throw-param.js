import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 1, throw: true };

function outcome(make) {
  try {
    return make().status;
  } catch (error) {
    return 'thrown';
  }
}

export default function () {
  const down = 'http://127.0.0.1:1/';
  check(null, {
    'the option throws': () => outcome(() => http.get(down)) === 'thrown',
    'a request need not': () => outcome(() => http.get(down, { throw: false })) === 0,
    'nor one with a wrong URL': () => outcome(() => http.get('http://a b/', { throw: false })) === 0,
    'nor one of a batch': () => http.batch([['GET', down, null, { throw: false }]])[0].status === 0,
    'an answer is none': () => outcome(() => http.get('BASE/missing', { throw: true })) === 404,
  });
}
