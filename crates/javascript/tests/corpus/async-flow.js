import http from 'k6/http';
import { check, group } from 'k6';
import { setTimeout, setInterval, clearInterval } from 'k6/timers';
const delay = (ms) => new Promise((ok) => setTimeout(ok, ms));
export const options = { iterations: 1, thresholds: { http_reqs: ['count==4'] } };
export default async function () {
  const [a, b] = await Promise.all([http.asyncRequest('GET', 'BASE/a'), http.asyncRequest('POST', 'BASE/b', { k: 'v' })]);
  let ticks = 0;
  await new Promise((ok) => { const id = setInterval(() => { ticks += 1; if (ticks === 3) { clearInterval(id); ok(); } }, 10); });
  await delay(20);
  const c = await http.asyncRequest('GET', 'BASE/c');
  const settled = await Promise.allSettled([Promise.reject(new Error('no')), c]);
  async function* pages() { for (let n = 0; n < 2; n++) { await delay(1); yield n; } }
  const got = [];
  for await (const n of pages()) got.push(n);
  check(null, { both: () => a.status === 200 && b.status === 200, ticks: () => ticks === 3, settled: () => settled[0].status === 'rejected' && settled[1].value.status === 200, generator: () => got.join() === '0,1' });
  http.get('BASE/end');
}
