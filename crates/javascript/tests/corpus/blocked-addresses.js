import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 1, blacklistIPs: ['127.0.0.0/8'] };

export default function () {
  check(http.get('BASE/'), { 'no answer': (r) => r.status === 0, 'code 1110': (r) => r.error_code === 1110, 'it says so': (r) => r.error !== '' });
}
