import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const credentials = 'user:p%40ss';
  const url = `BASE/basic-auth`.replace('://', `://${credentials}@`);
  const basic = http.get(url);
  check(basic, { 'basic': (r) => r.status === 200 });
  const digest = http.get(`BASE/digest-auth`.replace('://', '://Mufasa:secret@'), { auth: 'digest' });
  check(digest, { 'digest': (r) => r.status === 200 });
}
