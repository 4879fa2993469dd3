import http from 'k6/http';
import { check } from 'k6';
import { setTimeout as later, setInterval, clearInterval, clearTimeout } from 'k6/timers';

export default function () {
  const log = [];
  const started = Date.now();
  later(() => {
    log.push('late');
    http.get(`${__ENV.BASE}/late?after=${log.join('-')}`);
    check(Date.now() - started, { 'not too early': (ms) => ms >= 95 });
  }, 100);
  const never = later(() => http.get('BASE/never'), 50);
  clearTimeout(never);
  let ticks = 0;
  const id = setInterval((word) => {
    ticks += 1;
    log.push(word + ticks);
    if (ticks === 3) clearInterval(id);
  }, 10, 'tick');
  Promise.resolve().then(() => log.push('micro'));
  setTimeout(() => log.push('zero'), 0);
  log.push('sync');
}
