import http from 'k6/http';

export const options = {
  discardResponseBodies: true,
  scenarios: {
    contacts: {
      executor: 'ramping-arrival-rate',
      startRate: 10,
      timeUnit: '1s',
      preAllocatedVUs: 20,
      maxVUs: 50,
      stages: [
        { target: 30, duration: '1s' },
        { target: 30, duration: '500ms' },
        { target: 0, duration: '500ms' },
      ],
    },
  },
};

export default function () {
  http.get(`${__ENV.BASE}/contacts.php`);
}
