import http from 'k6/http';
import { check } from 'k6';

export const options = {
  scenarios: {
    shoppers: { executor: 'per-vu-iterations', vus: 2, iterations: 3, maxDuration: '20s' },
  },
};

// Each VU logs in once and keeps its token: variables of the top are its own.
let token = null;

function login() {
  const res = http.post('BASE/auth/token/login/', { username: `user_${__VU}`, password: 'S&cret 1' });
  check(res, { 'logged in': (r) => r.json('access') !== undefined });
  return res.json('access');
}

export default function () {
  if (token === null) {
    token = login();
  }
  const res = http.get('BASE/my/orders/', {
    headers: { Authorization: `Bearer ${token}` },
    tags: { name: 'orders' },
  });
  check(res, { 'has orders': (r) => r.json('orders').length === 2 });
}
