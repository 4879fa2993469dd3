import http from 'k6/http';
import { sleep, check } from 'k6';

export let options = {
  stages: [
    { duration: '500ms', target: 4 }, // ramp up
    { duration: '500ms', target: 4 },
    { duration: '0.5s', target: 0 }, // ramp down
  ],
  gracefulRampDown: '0s',
  thresholds: {
    'http_req_duration': ['p(99)<30000'],
    'vus_max': ['value<=4'],
  },
};

export default () => {
  let res = http.get('BASE/contacts.php');
  check(res, {
    'is status 200': (r) => r.status === 200,
    'verify homepage text': (r) => r.body.includes('Collection of simple web-pages'),
  });
  sleep(0.1);
};
