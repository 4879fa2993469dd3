import { Client, StatusOK } from 'k6/net/grpc';
import { check, sleep } from 'k6';

const client = new Client();
client.load(['./data'], 'echo.proto');

export const options = { thresholds: { grpc_req_duration: ['p(95)<30000'] } };

export default () => {
  client.connect('GRPC', { plaintext: true, timeout: '5s' });
  const response = client.invoke('brunt.Echo/Say', { text: 'Bert', times: 3 }, { metadata: { 'x-my-header': 'k6test' }, tags: { kind: 'say' } });
  check(response, {
    'status is OK': (r) => r && r.status === StatusOK,
    'echoed': (r) => r.message.text === 'Bert' && r.message.times === 3,
    'no error': (r) => r.error === null,
  });
  console.log(JSON.stringify(response.message.text));
  client.close();
};
