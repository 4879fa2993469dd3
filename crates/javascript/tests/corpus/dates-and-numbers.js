import http from 'k6/http';
import { check } from 'k6';

function stamp(date) {
  const pad = (n, width = 2) => String(n).padStart(width, '0');
  return `${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}T${pad(date.getUTCHours())}`;
}

export default function () {
  const day = new Date('2024-02-28T22:30:00Z');
  day.setUTCDate(day.getUTCDate() + 2);
  check(day, {
    'leap year': (d) => d.toISOString() === '2024-03-01T22:30:00.000Z',
    'difference': (d) => (d - new Date(Date.UTC(2024, 2, 1))) / 3600000 === 22.5,
    'parse': () => Date.parse('Thu, 01 Jan 1970 00:00:10 GMT') === 10000 && Number.isNaN(Date.parse('soon')),
    'fixed': () => (1.005).toFixed(2) === '1.00' && (1234.5678).toFixed(1) === '1234.6' && (0.1 + 0.2).toPrecision(3) === '0.300',
    'number texts': () => `${1e21} ${1e-7} ${123456789012} ${-0} ${0.1 + 0.2}` === '1e+21 1e-7 123456789012 0 0.30000000000000004',
    'radix': () => (255).toString(16) === 'ff' && (0.5).toString(2) === '0.1' && parseInt('z', 36) === 35,
    'rounding': () => Math.round(-0.5) === 0 && Math.round(2.5) === 3 && Math.trunc(-4.7) === -4 && Math.sign(-3) === -1,
  });
  http.get(`${__ENV.BASE}/report?from=${stamp(new Date(0))}&to=${encodeURIComponent(day.toISOString())}&ratio=${(2 / 3).toFixed(3)}`);
}
