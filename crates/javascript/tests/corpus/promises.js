import http from 'k6/http';
import { check, sleep } from 'k6';
import { setTimeout, clearTimeout, setInterval, clearInterval } from 'k6/timers';
export const options = { iterations: 1 };
const wait = (ms, value) => new Promise((resolve) => setTimeout(() => resolve(value), ms));
export default async function () {
  const both = await Promise.all([http.asyncRequest('GET', 'BASE/a'), http.asyncRequest('POST', 'BASE/b', JSON.stringify({ n: 1 }), { headers: { 'Content-Type': 'application/json' } })]);
  const first = await Promise.race([wait(400, 'slow'), wait(20, 'fast')]);
  const any = await Promise.any([Promise.reject(new Error('x')), wait(5, 'any')]);
  const settled = await Promise.allSettled([wait(1, 1), Promise.reject(new Error('no'))]);
  const order = [];
  await Promise.all([2, 1].map(async (n) => { await wait(n * 60); order.push(n); }));
  let ticks = 0;
  await new Promise((resolve) => { const id = setInterval(() => { ticks += 1; if (ticks === 3) { clearInterval(id); resolve(); } }, 5); });
  const never = setTimeout(() => { ticks = 100; }, 5);
  clearTimeout(never);
  const caught = await http.asyncRequest('GET', 'http://nowhere.invalid/').then((r) => r.error_code, (e) => e.message);
  let thrown;
  try { await Promise.reject(new TypeError('bad')); } catch (e) { thrown = e; } finally { order.push('finally'); }
  check(null, {
    all: () => both.map((r) => r.status).join() === '200,200',
    race: () => first === 'fast',
    any: () => any === 'any',
    settled: () => settled[0].value === 1 && settled[1].reason.message === 'no',
    order: () => order.join() === '1,2,finally',
    ticks: () => ticks === 3,
    'a failed request resolves': () => caught === 1101,
    'try and await': () => thrown instanceof TypeError,
  });
  setTimeout(() => { http.get('BASE/last'); }, 30);
}
