import http from 'k6/http';
import { parseHTML } from 'k6/html';
import { check } from 'k6';

export default function () {
  const doc = http.get('BASE/list').html();
  const items = doc.find('ul.items li');
  const prices = items.map((i, el) => parseFloat(el.find('.price').text()));
  const links = [];
  doc.find('a[href^="/p"]').each((i, el) => links.push(`${i}:${el.getAttribute('href')}`));
  check(items, {
    size: (s) => s.size() === 3,
    'eq, first, last, get': (s) => s.eq(1).find('a').text() === 'Two' && s.first().attr('data-id') === '1' && s.last().attr('id') === 'three' && s.get(0).nodeName() === 'li',
    'next, prev': (s) => s.eq(0).next().attr('data-id') === '2' && s.eq(2).prev().attr('data-id') === '2' && typeof s.siblings === 'undefined',
    'parent, closest, children': (s) => s.parent().attr('class') === 'items' && s.find('a').closest('ul').is('.items') && s.eq(0).children().size() === 2,
    'filter, not, has, is': (s) => s.filter('.sale').size() === 1 && s.not('.sale').size() === 2 && s.has('em').size() === 1 && s.is('.sale') && !s.first().is('.sale'),
    'filter by a function': (s) => s.filter((i, el) => el.find('.price').text() > '2').size() === 2,
    slice: (s) => s.slice(1).size() === 2 && s.slice(0, 1).attr('data-id') === '1',
    'map and toArray': (s) => prices.join() === '1.5,2.5,3.5' && s.toArray().length === 3 && s.toArray()[1].text().includes('Two'),
    data: (s) => s.first().data('id') === 1 && s.last().data('info').a === true,
    'attr with a default': (s) => s.attr('missing', 'none') === 'none' && s.attr('missing') === undefined,
    each: () => links.join() === '0:/p/1,1:/p/2,2:/p/3',
    'text and html': (s) => s.eq(1).text().trim() === 'Two 2.5' && s.eq(1).find('span').html() === '2.5',
    'nothing found': () => doc.find('table').size() === 0 && doc.find('table').text() === '' && doc.find('table').attr('x') === undefined,
    'parents, contents, nextAll': (s) => s.find('em').parents().size() === 5 && s.first().nextAll().size() === 2 && s.last().prevAll('.sale').size() === 1,
    serialize: () => doc.find('form').serialize() === 'q=a+b&kind=2&on=1' && Object.entries(doc.find('form').serializeObject()).sort().join() === 'kind,2,on,1,q,a b',
    val: () => doc.find('input[name=q]').val() === 'a b' && doc.find('select').val() === '2' && doc.find('textarea').val() === 'long\ntext',
    parseHTML: () => parseHTML('<p>a<b>c</b></p>').find('p').text() === 'ac',
  });
}
