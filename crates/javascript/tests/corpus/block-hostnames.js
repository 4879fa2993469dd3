import http from 'k6/http';
import { check } from 'k6';

export const options = {
  blockHostnames: ['*.ads.test', 'tracker.test'],
  hosts: { 'shop.test': '127.0.0.1' },
  thresholds: { http_req_failed: ['rate<1'] },
};

export default function () {
  http.get('http://shop.test:PORT/page');
  for (const url of ['http://eu.ads.test:PORT/pixel', 'http://tracker.test:PORT/t']) {
    let res = null;
    try {
      res = http.get(url);
    } catch (e) {
      console.log(`blocked: ${e.message !== ''}`);
    }
    check(res, { 'is not sent': (r) => r === null || (r.status === 0 && r.error_code !== 0) });
  }
}
