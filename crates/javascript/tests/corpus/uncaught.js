import http from 'k6/http';

export const options = { iterations: 4 };

export default function () {
  const res = http.get(`${__ENV.BASE}/n/${__ITER}`);
  const id = res.json().data.id; // the third answer has no data
  http.get(`${__ENV.BASE}/id/${id}`);
}
