import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';

export const options = {
  discardResponseBodies: true,
  scenarios: {
    contacts: {
      executor: 'constant-vus',
      exec: 'contacts',
      vus: 2,
      duration: '1s',
      gracefulStop: '1s',
      tags: { my_custom_tag: 'contacts' },
      env: { MYVAR: 'contacts' },
    },
    news: {
      executor: 'per-vu-iterations',
      exec: 'news',
      vus: 2,
      iterations: 5,
      startTime: '1200ms',
      maxDuration: '20s',
      tags: { my_custom_tag: 'news' },
      env: { MYVAR: 'news' },
    },
  },
  thresholds: {
    'http_req_duration{my_custom_tag:contacts}': ['p(95)<30000'],
    'http_reqs{scenario:news}': ['count===10'],
    'http_reqs{my_custom_tag:news}': [{ threshold: 'count<10', abortOnFail: false }],
  },
};

export function contacts() {
  const res = http.get('BASE/contacts.php', { tags: { my_custom_tag: 'contacts' } });
  check(res, { 'body is discarded': (r) => r.body === null });
  check(exec.scenario.name, { 'in contacts': (n) => n === 'contacts' && __ENV.MYVAR === 'contacts' });
}

export function news() {
  http.get(`${__ENV.BASE}/news.php?by=${__ENV.MYVAR}&n=${exec.vu.iterationInScenario}`);
}
