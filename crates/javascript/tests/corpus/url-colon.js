import http from 'k6/http';

export default function () {
  const res = http.get('ht!tp://127.0.0.1/');
  console.log(res.error_code, res.error);
  http.get('BASE/');
}
