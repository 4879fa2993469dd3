import http from 'k6/http';

export let options = {
  iterations: 5,
  thresholds: {
    http_req_duration: [
      { threshold: 'p(95)<1', abortOnFail: false },
      'p(95)<30000',
    ],
    http_req_waiting: ['avg>25'],
    http_reqs: ['count>3', 'rate>0'],
    data_received: ['count>100'],
    data_sent: ['count<1000000'],
  },
};

export default function () {
  http.get('BASE/slow');
}
