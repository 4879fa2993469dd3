import ws from 'k6/ws';
import http from 'k6/http';
import { check } from 'k6';

export const options = {
  vus: 2,
  iterations: 4,
  thresholds: { ws_sessions: ['count==4'], ws_msgs_sent: ['count==4'], ws_msgs_received: ['count==4'], ws_session_duration: ['max<30000'] },
};

export default function () {
  const login = http.get('BASE/login');
  const res = ws.connect('WSBASE/bin', { headers: { Cookie: `sid=${login.cookies.sid[0].value}`, 'Sec-WebSocket-Protocol': 'v1.bin' } }, (socket) => {
    socket.on('open', () => socket.sendBinary(new Uint8Array([1, 2, 255]).buffer));
    socket.on('binaryMessage', (message) => {
      check(message, { 'three bytes': (m) => new Uint8Array(m).join() === '1,2,255' });
      socket.close(1000);
    });
  });
  check(res, { 'protocol': (r) => r.headers['Sec-Websocket-Protocol'] === 'v1.bin' });
  const refused = ws.connect('WSBASE/forbidden', null, (socket) => socket.on('open', () => socket.close()));
  check(refused, { 'refused with 403': (r) => r.status === 403 });
}
