import http from 'k6/http';
export const options = { scenarios: { a: { executor: 'constant-vu', vus: 1, duration: '1s' } } };
export default function () { http.get('BASE/'); }
