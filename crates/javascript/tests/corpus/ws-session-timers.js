import ws from 'k6/ws';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
const got = new Counter('got');
export const options = { iterations: 1, thresholds: { ws_sessions: ['count==1'], ws_msgs_sent: ['count==4'], ws_msgs_received: ['count>=4'], 'ws_session_duration{status:101}': ['max<30000'] } };
export default function () {
  const log = [];
  const res = ws.connect('WSBASE/room', { headers: { 'X-Room': 'a' }, tags: { kind: 'chat' } }, function (socket) {
    socket.on('open', () => {
      socket.send(JSON.stringify({ event: 'join' }));
      let ticks = 0;
      socket.setInterval(() => { ticks += 1; if (ticks <= 2) socket.send('tick'); if (ticks === 3) socket.send('bye'); }, 40);
      socket.ping();
    });
    socket.on('pong', () => log.push('pong'));
    socket.on('message', (data) => {
      got.add(1);
      if (data.startsWith('{')) log.push(JSON.parse(data).event);
      else log.push(data);
      if (data === 'bye') socket.setTimeout(() => { log.push('timeout'); socket.close(); }, 30);
    });
    socket.on('close', () => log.push('close'));
    socket.on('error', (e) => log.push(`error ${e.error()}`));
  });
  check(res, { 'status is 101': (r) => r && r.status === 101, url: (r) => r.url === 'WSBASE/room' });
  check(log, {
    'echoed in order': (l) => l.filter((x) => !['pong', 'timeout', 'close'].includes(x)).join() === 'join,tick,tick,bye',
    'pong came': (l) => l.includes('pong'),
    'close is last': (l) => l.at(-1) === 'close' && l.at(-2) === 'timeout',
  });
}
