import http from 'k6/http';

export const options = { vus: 4, duration: '1s', rps: 20, userAgent: 'MyK6UserAgentString/1.0' };

export default function () {
  http.get('BASE/limited');
}
