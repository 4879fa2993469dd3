import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  vus: 2,
  duration: '30s',
  thresholds: {
    http_req_failed: [{ threshold: 'rate<0.5', abortOnFail: true, delayAbortEval: '300ms' }],
  },
};

export default function () {
  http.get('BASE/broken');
  sleep(0.1);
}
