import http from 'k6/http';
import { check, fail } from 'k6';

export const options = { iterations: 3 };

class ApiError extends Error {
  constructor(status, ...rest) {
    super(...rest);
    this.name = 'ApiError';
    this.status = status;
  }
}

function load(path) {
  const res = http.get(`${__ENV.BASE}${path}`);
  if (res.status >= 400) {
    throw new ApiError(res.status, `GET ${path} failed`);
  }
  return res.json();
}

export default function () {
  let caught;
  try {
    load('/fails');
  } catch (error) {
    caught = error;
  } finally {
    http.get('BASE/finally');
  }
  check(caught, {
    'our own class': (e) => e instanceof ApiError && e instanceof Error && e.status === 500,
    'as text': (e) => `${e}` === 'ApiError: GET /fails failed',
    'stack names the function': (e) => e.stack.includes('load'),
  });
  try {
    JSON.parse('{"half":');
  } catch (e) {
    check(e, { 'a SyntaxError': (x) => x.name === 'SyntaxError' });
  }
  try {
    null.field;
  } catch (e) {
    check(e, { 'a TypeError': (x) => x instanceof TypeError });
  }
  if (__ITER === 1) {
    fail('unexpected response');
  }
  if (__ITER === 2) {
    throw { code: 7 };
  }
  http.get('BASE/end');
}
