import http from 'k6/http';
import { check } from 'k6';
import Api, { VERSION, withQuery as q } from './lib/api.js';
import * as flows from './lib/flows.js';
export { options } from './lib/options.js';

const api = new Api(__ENV.BASE);

export function setup() {
  return { version: VERSION };
}

export default function (data) {
  check(data, { version: (d) => d.version === '2.1' });
  api.get(q('/search', { term: 'blue lamp', page: 2 }));
  flows.visit(api);
  check(Object.keys(flows).sort().join(), { 'all exports': (k) => k === 'default,visit' });
}

export { teardown } from './lib/flows-teardown.js';
