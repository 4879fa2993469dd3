import http from 'k6/http';
import { check } from 'k6';

export const options = {
  dns: {
    ttl: '1m',
    select: 'first',
    policy: 'preferIPv4',
  },
};

export default function () {
  const res = http.get('http://localhost:PORT/named');
  check(res, { 'comes by IPv4': (r) => r.status === 200 });
}
