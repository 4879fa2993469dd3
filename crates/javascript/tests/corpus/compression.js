import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const zipped = http.get('BASE/zipped', { headers: { 'Accept-Encoding': 'gzip' } });
  check(zipped, {
    'is unzipped': (r) => r.body === 'Grüße vom Server',
  });
  const text = 'a'.repeat(2000);
  const sent = http.post('BASE/packed', text, { compression: 'gzip' });
  check(sent, {
    'is smaller': (r) => Number(r.json('headers.content-length')) < 200,
    'says so': (r) => r.json('headers.content-encoding') === 'gzip',
  });
}
