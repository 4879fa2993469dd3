import http from 'k6/http';
import { check, sleep } from 'k6';

const body = open('./data/soap.xml');

export default function () {
  // The answer is XML: it is read by its text.
  const res = http.post('BASE/ws/hotel', body.replace('{{CITY}}', 'Gdańsk'), {
    headers: { 'Content-Type': 'text/xml; charset=utf-8', SOAPAction: 'urn:findHotels' },
  });
  check(res, {
    'status is 200': (r) => r.status === 200,
    'hotel is present': (r) => r.body.indexOf('<name>Grand</name>') !== -1,
    'header in Go form': (r) => r.headers['X-Request-Id'] === 'abc' && r.headers['x-request-id'] === undefined,
    'repeated fields are joined': (r) => r.headers['Content-Type'].startsWith('text/xml'),
  });
  sleep(0.01);
}
