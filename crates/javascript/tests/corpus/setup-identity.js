import http from 'k6/http';
import exec from 'k6/execution';

export const options = { vus: 1, iterations: 2 };

export function setup() {
  http.get(`BASE/setup?vu=${__VU}&id=${exec.vu.idInTest}&instance=${exec.vu.idInInstance}`);
}

export default function () {
  http.get(`BASE/work?vu=${__VU}&id=${exec.vu.idInTest}&instance=${exec.vu.idInInstance}&iter=${__ITER}`);
}

export function teardown() {
  http.get(`BASE/teardown?vu=${__VU}&id=${exec.vu.idInTest}&instance=${exec.vu.idInInstance}`);
}
