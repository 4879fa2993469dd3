import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
import { randomString } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';

const sessions = 2;

export default function () {
  for (let i = 0; i < sessions; i++) {
    startWSWorker(i);
  }
}

function startWSWorker(id) {
  const ws = new WebSocket(`WSBASE/ws/${id}`, null, { headers: { 'X-Worker': `${id}` } });
  ws.binaryType = 'arraybuffer';
  const heard = [];

  ws.addEventListener('open', () => {
    check(ws, { 'is open': (s) => s.readyState === 1 && s.url.endsWith(`/ws/${id}`) });
    ws.send(JSON.stringify({ event: 'SET_NAME', new_name: `Croc ${__VU}:${id}` }));
    check(randomString(8), { 'eight letters': (s) => /^[a-z]{8}$/.test(s) });

    ws.addEventListener('message', (e) => {
      const msg = JSON.parse(e.data);
      heard.push(msg.event);
      if (msg.event === 'SET_NAME') {
        const timer = setInterval(() => ws.send(JSON.stringify({ event: 'SAY', message: 'hi' })), 20);
        setTimeout(() => {
          clearInterval(timer);
          ws.send(JSON.stringify({ event: 'LEAVE' }));
        }, 110);
      } else if (msg.event === 'LEAVE') {
        ws.close();
      }
    });
    ws.onclose = () => check(heard, { 'said and left': (h) => h[0] === 'SET_NAME' && h.includes('SAY') && h[h.length - 1] === 'LEAVE' });
  });
  ws.onerror = (e) => console.error('unexpected', e.error);
}
