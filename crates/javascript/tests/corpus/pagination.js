import http from 'k6/http';
import { check } from 'k6';

export default function () {
  let next = '/items?limit=2';
  const items = [];
  let pages = 0;
  while (next && pages < 10) {
    const res = http.get(`${__ENV.BASE}${next}`, { tags: { name: 'items' } });
    const { items: page = [], next: link = null } = res.json();
    items.push(...page);
    next = link;
    pages++;
  }
  const unique = new Set(items.map(({ id }) => id));
  const byKind = items.reduce((all, item) => ({ ...all, [item.kind]: [...(all[item.kind] || []), item.id] }), {});
  check(byKind, {
    'three pages': () => pages === 3,
    'five items': () => unique.size === 5,
    'kinds': (k) => JSON.stringify(k) === '{"a":[1,3,5],"b":[2,4]}',
    'sum': () => items.map((i) => i.id).reduce((a, b) => a + b, 0) === 15,
  });
}
