import http from 'k6/http';
import { FormData } from 'https://jslib.k6.io/formdata/0.0.2/index.js';
import { check } from 'k6';

const img = open('./data/pixel.bin', 'b');

export default function () {
  const fd = new FormData();
  fd.append('someTextField', 'someValue');
  fd.append('aBinaryFile', http.file(img, 'logo.png', 'image/png'));
  fd.append('anotherTextField', 'zwei');
  const res = http.post('BASE/post', fd.body(), { headers: { 'Content-Type': 'multipart/form-data; boundary=' + fd.boundary } });
  check(res, { 'is status 200': (r) => r.status === 200 });
}
