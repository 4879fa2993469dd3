import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
import { randomIntBetween, randomItem } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';

class Page {
  constructor(path) { this.path = path; }
  get url() { return `${__ENV.BASE}${this.path}`; }
  open(params = {}) {
    this.response = http.get(this.url, { tags: { name: this.constructor.name }, ...params });
    return this;
  }
  token() { return this.response.html('input[name=csrf]').attr('value') ?? fail(`no token on ${this.path}`); }
}
class Login extends Page {
  constructor() { super('/login'); }
  as(user) {
    const csrf = this.token();
    return http.post(this.url, { csrf, user, password: 'p&w=1' }, { redirects: 1 });
  }
}
class Cart extends Page { constructor() { super('/cart'); } }

export const options = { vus: 1, iterations: 2, thresholds: { 'http_reqs{name:Login}': ['count==2'], 'http_req_duration{name:Cart}': ['p(90)<30000'] } };

export default function () {
  const jar = http.cookieJar();
  const before = jar.cookiesForURL(__ENV.BASE);
  const home = group('login', () => new Login().open().as(`user-${__VU}`));
  check(home, {
    'is at home': (r) => r.url.endsWith('/home') && r.status === 200,
    'new iteration, new cookies': () => before.sid === undefined,
    'has the cookie': () => jar.cookiesForURL(__ENV.BASE).sid?.[0] === 's1',
  });
  group('buy', () => {
    const cart = new Cart().open({ cookies: { currency: 'EUR' } });
    check(cart.response, { 'items': (r) => r.json('items.#') === 3 && r.json('items.#.id').join() === '7,8,9' && r.json('items.1.name') === 'b"c' });
    const item = randomItem(cart.response.json('items').filter((i) => i.id === 8));
    http.put(`${cart.url}/${item.id}`, JSON.stringify({ n: randomIntBetween(3, 3) }), { headers: { 'Content-Type': 'application/json' } });
  });
  sleep(Math.random() * 0.01);
}
