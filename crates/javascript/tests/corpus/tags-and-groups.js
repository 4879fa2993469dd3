import http from 'k6/http';
import { check, group } from 'k6';

export const options = {
  iterations: 2,
  tags: { release: '2024-11' },
  systemTags: ['status', 'method', 'group', 'name', 'check', 'scenario'],
  thresholds: {
    'http_reqs{group:::visit::pay}': ['count==2'],
    'http_reqs{group:::visit}': ['count==2'],
    'http_reqs{release:2024-11}': ['count==6'],
    'http_reqs{method:POST}': ['count==2'],
    'http_reqs{scenario:default,status:200}': ['count==6'],
    'checks{check:paid}': ['rate==1'],
  },
};

export default function () {
  http.get('BASE/plain');
  const total = group('visit', () => {
    http.get('BASE/visit');
    return group('pay', function () {
      const res = http.post('BASE/pay', '{}', { tags: { kind: 'money' } });
      check(res, { paid: (r) => r.status === 200 }, { kind: 'money' });
      return 41;
    }) + 1;
  });
  check(total, { 'a group returns what its function returns': (t) => t === 42 });
  try {
    group('fails', () => {
      throw new Error('inside');
    });
  } catch (e) {
    check(e, { 'errors leave their group': (x) => x.message === 'inside' });
  }
}
