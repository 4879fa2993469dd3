import http from 'k6/http';
import { check } from 'k6';
import { FormData } from 'https://jslib.k6.io/formdata/0.0.2/index.js';
import encoding from 'k6/encoding';
export default function () {
  const fd = new FormData();
  fd.append('title', 'a report');
  fd.append('file', http.file(new Uint8Array([1, 2, 3]).buffer, 'a.bin', 'application/x-a'));
  http.post('BASE/fd', fd.body(), { headers: { 'Content-Type': 'multipart/form-data; boundary=' + fd.boundary } });
  http.post('BASE/one', { file: http.file('hello', 'h.txt') });
  http.put('BASE/raw', new Uint8Array([0, 255, 10]).buffer, { headers: { 'Content-Type': 'application/octet-stream' } });
  check(null, { b64: () => encoding.b64encode(new Uint8Array([1, 2]).buffer) === 'AQI=' && encoding.b64decode('aGk=', 'std', 's') === 'hi' && encoding.b64encode('a?>', 'rawurl') === 'YT8-' && new Uint8Array(encoding.b64decode('AQI', 'rawstd')).length === 2 });
}
