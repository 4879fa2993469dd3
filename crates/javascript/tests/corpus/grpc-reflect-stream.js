import grpc from 'k6/net/grpc';
import { check } from 'k6';

const client = new grpc.Client();

export default function () {
  client.connect('GRPC', { plaintext: true, reflect: true });
  const failed = client.invoke('brunt.Echo/Fail', { status: 5, message: 'no such thing' });
  check(failed, {
    'not found': (r) => r.status === grpc.StatusNotFound,
    'with its message': (r) => r.error.message === 'no such thing' && r.error.code === 5,
  });

  const stream = new grpc.Stream(client, 'brunt.Echo/Chat', { metadata: { 'x-a': '1' } });
  const heard = [];
  stream.on('data', (message) => heard.push(message.text));
  stream.on('error', (e) => console.error(`stream: ${JSON.stringify(e)}`));
  stream.on('end', () => {
    check(heard, { 'each text comes back': (h) => h.join() === 'a,b,c' });
    client.close();
  });
  for (const text of ['a', 'b', 'c']) {
    stream.write({ text });
  }
  stream.end();
}
