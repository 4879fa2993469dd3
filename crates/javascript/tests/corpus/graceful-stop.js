import http from 'k6/http';

export const options = {
  scenarios: {
    patient: { executor: 'constant-vus', vus: 1, duration: '800ms', gracefulStop: '9s', exec: 'patient' },
    impatient: { executor: 'constant-vus', vus: 1, duration: '800ms', gracefulStop: '100ms', exec: 'impatient' },
  },
};

export function patient() {
  http.get('BASE/first');
  http.get('BASE/after');
}

export function impatient() {
  http.get('BASE/slow');
  http.get('BASE/never');
}
