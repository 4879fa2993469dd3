import http from 'k6/http';
import { check } from 'k6';
import { parseHTML } from 'k6/html';
export default function () {
  const res = http.get('BASE/page');
  const doc = parseHTML(res.body);
  const terms = [];
  doc.find('dl').children().toArray().forEach((item) => terms.push(item.text()));
  const mapped = doc.find('dt').map((i, el) => `${i}:${el.text()}`);
  const seen = [];
  doc.find('dd').each((i, el) => { seen.push(`${i}=${el.textContent()}`); if (i === 1) return false; });
  check(doc, {
    children: () => terms.join('|') === 'term 1|def 1-a|def 1-b|term 2|def 2-a',
    map: () => mapped.join() === '0:term 1,1:term 2',
    'each gives Elements': () => seen[0] === '0=def 1-a',
    attr: (d) => d.find('dt').attr('id') === 'term-1' && d.find('dd').attr('id') === undefined,
    'next until': (d) => d.find('#term-1').nextUntil('dt').size() === 2,
    nextAll: (d) => d.find('#term-1').nextAll('dd').size() === 3,
    prev: (d) => d.find('dt').last().prev().text() === 'def 1-b',
    parents: (d) => d.find('dd').first().parents('dl').size() === 1,
    closest: (d) => d.find('dd').closest('body').is('body'),
    'filter and not': (d) => d.find('dd').filter(':contains("2-a")').size() === 1 && d.find('dd').not(':contains("2-a")').size() === 2,
    'eq get slice': (d) => d.find('dd').eq(1).text() === 'def 1-b' && d.find('dd').get(2).textContent() === 'def 2-a' && d.find('dd').slice(1).size() === 2,
    has: (d) => d.find('div').has('span').size() === 1,
    'html of first': (d) => d.find('div').html() === '<span>x</span>',
    data: (d) => d.find('div').data('price-cents') === 42 && d.find('div').data('list')[1] === 'b',
    val: (d) => d.find('select').val() === '2' && d.find('textarea').val() === 'long',
    serialize: (d) => d.find('form').serialize() === 'name=Ann+B&s=2&t=long',
    serializeObject: (d) => JSON.stringify(d.find('form').serializeObject()) === '{"name":"Ann B","s":"2","t":"long"}',
    serializeArray: (d) => JSON.stringify(d.find('form').serializeArray()) === '[{"name":"name","value":"Ann B"},{"name":"s","value":"2"},{"name":"t","value":"long"}]',
  });
}
