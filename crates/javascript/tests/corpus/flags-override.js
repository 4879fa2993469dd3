import http from 'k6/http';

// k6 run --vus 2 --iterations 6 script.js: flags come before the script's options.
export const options = { vus: 50, duration: '10m', tags: { kind: 'smoke' } };

export default function () {
  http.get(`${__ENV.BASE}/${__ENV.GREETING}/${__VU <= 2}`);
}
