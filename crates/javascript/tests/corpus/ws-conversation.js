import ws from 'k6/ws';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
const got = new Counter('ws_got');
export const options = { vus: 1, iterations: 1, thresholds: { ws_sessions: ['count==1'], ws_msgs_sent: ['count==3'], ws_msgs_received: ['count>=3'], ws_connecting: ['max<5000'], ws_session_duration: ['max>90'] } };
export default function () {
  const url = 'WSBASE/ws/crocochat/room/';
  const order = [];
  const res = ws.connect(url, { headers: { 'X-Who': 'ann' }, tags: { my_tag: 'hello' } }, function (socket) {
    let n = 0;
    const say = () => socket.send(JSON.stringify({ event: 'SAY', n: (n += 1) }));
    socket.on('open', function open() { order.push('open'); socket.ping(); say(); });
    socket.on('pong', () => order.push('pong'));
    socket.on('message', function (m) {
      got.add(1);
      order.push(JSON.parse(m).event);
      if (n < 3) say();
      else socket.setTimeout(function () { socket.close(); }, 100);
    });
    socket.on('close', () => order.push('close'));
    socket.on('error', (e) => order.push('error ' + e.error()));
  });
  check(res, { 'status is 101': (r) => r && r.status === 101, url: (r) => r.url === url });
  check(order, { 'opened first, closed last': (o) => o[0] === 'open' && o[o.length - 1] === 'close', 'no error': (o) => !o.some((x) => x.startsWith('error')), pong: (o) => o.includes('pong') });
}
