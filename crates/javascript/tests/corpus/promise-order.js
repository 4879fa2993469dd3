import http from 'k6/http';

// What the library loads with its first use must not let promises go on before their turn.
export default async function () {
  Promise.resolve().then(() => console.log('third'));
  console.log('first');
  const res = http.post('BASE/form', { a: 1 }, { headers: { 'X-A': '1' } });
  console.log('second', res.status_text, res.headers['Content-Type']);
  await null;
  console.log('fourth');
}
