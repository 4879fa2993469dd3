import http from 'k6/http';

export const options = { vus: 1, duration: '1s', minIterationDuration: '250ms' };

export function setup() {
  http.get('BASE/setup'); // setup and teardown are not stretched here
}

export default function () {
  http.get('BASE/paced');
}
