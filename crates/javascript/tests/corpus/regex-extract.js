import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const res = http.get('BASE/page');
  const token = /name="csrf" value="(?<token>[^"]+)"/.exec(res.body)?.groups.token;
  const links = [...res.body.matchAll(/href='([^']*)'/g)].map((m) => m[1]);
  const prices = (res.body.match(/€\s*\d+[.,]\d{2}/g) || []).map((p) => parseFloat(p.replace(/[€\s]/g, '').replace(',', '.')));
  check(res, {
    'links': () => links.length === 2 && links[1] === '/b?x=1&amp;y=2',
    'prices': () => prices.join() === '12.5,3.99',
    'lookbehind and unicode': (r) => r.body.match(/(?<=Größe: )\p{Lu}+/u)[0] === 'XL',
    'sticky and lastIndex': () => { const re = /a/y; re.lastIndex = 2; return re.test('bba') && re.lastIndex === 3; },
    'replace by function': () => 'a-b-c'.replace(/-(\w)/g, (_, c) => c.toUpperCase()) === 'aBC',
    'split keeps groups': () => '2024-01/02'.split(/([-/])/).length === 5,
    'dot all, multi-line': () => /^b.c$/ms.test('a\nb\nc') && !/^b.c$/.test('b\nc'),
    'replaceAll and $&': () => 'x.y.z'.replaceAll('.', '[$&]') === 'x[.]y[.]z',
  });
  http.post('BASE/submit', `csrf=${encodeURIComponent(token)}`, { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
}
