import { Client, StatusOK, StatusInvalidArgument } from 'k6/net/grpc';
import grpc from 'k6/net/grpc';
import { check } from 'k6';
const client = new Client();
export const options = { iterations: 2, thresholds: { grpc_req_duration: ['p(99)<9000'], checks: ['rate==1'] } };
export default () => {
  if (__ITER === 0) client.connect('GRPC', { plaintext: true, reflect: true, timeout: '5s' });
  const r = client.invoke('brunt.Echo/Nope', {});
  client.close();
};
