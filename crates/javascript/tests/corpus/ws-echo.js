import ws from 'k6/ws';
import { check } from 'k6';

export default function () {
  const url = 'WSBASE/chat?room=1';
  const params = { tags: { my_tag: 'hello' }, headers: { 'X-Token': 'tok' } };
  const got = [];
  const response = ws.connect(url, params, function (socket) {
    socket.on('open', function open() {
      got.push('open');
      socket.send('one');
      socket.setInterval(function timeout() {
        socket.ping();
      }, 40);
    });
    socket.on('message', (data) => {
      got.push(data);
      if (data === 'one') socket.send(JSON.stringify({ say: 'two' }));
    });
    socket.on('pong', () => got.includes('pong') || got.push('pong'));
    socket.on('close', () => got.push('close'));
    socket.on('error', (e) => {
      if (e.error() !== 'websocket: close sent') console.error('error', e.error());
    });
    socket.setTimeout(() => socket.close(), 200);
  });
  check(response, { 'status is 101': (r) => r && r.status === 101 });
  check(got, { 'all in order': (g) => g.join('|') === 'open|welcome|one|{"say":"two"}|pong|close' || g.join('|') });
}
