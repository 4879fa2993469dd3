import http from 'k6/http';
import { check } from 'k6';

export const options = {
  hosts: {
    'shop.test': '127.0.0.1',
    'api.test:8000': '127.0.0.1:PORT',
    '*.wild.test': '127.0.0.1',
  },
};

export default function () {
  const responses = [
    http.get('http://shop.test:PORT/shop'),
    http.get('http://api.test:8000/api'),
    http.get('http://a.b.wild.test:PORT/wild'),
  ];
  check(responses, { 'all come to this machine': (all) => all.every((r) => r.status === 200 && r.remote_ip === '127.0.0.1') });
}
