import http from 'k6/http';
import { check } from 'k6';

const binFile = open('./data/pixel.bin', 'b');
const csv = open('./data/users.csv');

export default function () {
  const data = {
    field: 'this is a standard form field',
    file: http.file(binFile, 'test.bin'),
    table: http.file(csv.slice(0, 13), 'users.csv', 'text/csv'),
  };
  const res = http.post('BASE/upload', data);
  check(res, { 'is multipart': (r) => r.json('headers.content-type').startsWith('multipart/form-data; boundary=') });
  http.post('BASE/raw', binFile, { headers: { 'Content-Type': 'application/octet-stream' } });
}
