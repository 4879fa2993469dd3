import http from 'k6/http';

export const options = { iterations: 1 };
console.log('in the init context');

export function setup() {
  console.info('in setup');
}

export default function () {
  console.log('plain', 1, true, null, undefined);
  console.log({ a: [1, { b: 'x' }] });
  console.log(['one', 2]);
  console.warn(`VU ${__VU} warns`);
  console.error('an error line');
  const res = http.get('BASE/x');
  console.log(`status: ${res.status} body: ${res.body}`);
  console.log(JSON.stringify(res.headers['Content-Type']));
}

export function teardown() {
  console.log('in teardown');
}
