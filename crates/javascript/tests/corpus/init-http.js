import http from 'k6/http';

const token = http.get('BASE/token').body;

export default function () {
  http.get('BASE/x', { headers: { Authorization: token } });
}
