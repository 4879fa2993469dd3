import http from 'k6/http';
import { check } from 'k6';

export const options = {
  insecureSkipTLSVerify: true,
  tlsAuth: [
    {
      domains: ['127.0.0.1'],
      cert: open('./cert.pem'),
      key: open('./key.pem'),
    },
  ],
  tlsVersion: { min: 'tls1.2', max: 'tls1.3' },
};

export default function () {
  const res = http.get('BASE/who');
  check(res, {
    'over TLS': (r) => r.url.startsWith('https://') && /^tls1\.[23]$/.test(r.tls_version),
    'handshake was timed': (r) => r.timings.tls_handshaking > 0,
  });
}
