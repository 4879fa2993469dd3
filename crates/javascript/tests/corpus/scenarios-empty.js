import http from 'k6/http';
export const options = { scenarios: {} };
export default function () { http.get('BASE/once'); }
