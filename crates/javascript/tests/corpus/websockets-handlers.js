import { WebSocket } from 'k6/websockets';
import { setTimeout } from 'k6/timers';
import { check } from 'k6';
export default function () {
  const ws = new WebSocket('WSBASE/feed', null, { headers: { 'X-Auth': 'k' }, tags: { t: 'v' } });
  ws.binaryType = 'arraybuffer';
  const seen = [];
  check(ws, { connecting: (w) => w.readyState === 0, url: (w) => w.url === 'WSBASE/feed' });
  ws.onopen = () => { seen.push(ws.readyState); ws.send('text'); ws.send(new Uint8Array([1, 2, 255]).buffer); };
  ws.addEventListener('message', (e) => {
    seen.push(typeof e.data === 'string' ? e.data : `bytes ${new Uint8Array(e.data).join()}`);
    if (seen.length === 3) setTimeout(() => ws.close(1000, 'bye'), 20);
  });
  ws.onclose = (e) => {
    check(seen, { events: (s) => s.join('|') === '1|text|bytes 1,2,255', closed: () => ws.readyState === 3, 'close code': () => e.code === 1000 });
  };
  ws.onerror = (e) => console.error(e.error);
}
