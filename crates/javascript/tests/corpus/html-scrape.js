import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const home = http.get('BASE/');
  const links = [];
  home.html().find('nav a').each((i, el) => links.push(el.getAttribute('href')));
  check(links, { 'three links': (l) => l.length === 3 });
  const responses = http.batch(links.filter((l) => !l.startsWith('http')).map((l) => ['GET', __ENV.BASE + l]));
  check(responses, { 'two pages': (r) => r.length === 2 });
  const table = home.html('table tr').toArray().slice(1).map((row) => row.find('td').toArray().map((c) => c.text().trim()));
  check(table, { 'table': (t) => JSON.stringify(t) === '[["Lamp","10"],["Desk","25"]]' });
  check(home.html(), {
    'data attribute': (d) => d.find('#cart').data('count') === 4,
    'children and parent': (d) => d.find('nav').children().size() === 3 && d.find('nav a').first().parent().attr('class') === 'top main',
    'html of': (d) => d.find('#cart').html() === '<b>4</b> items',
    'has class': (d) => d.find('nav.top').is('.main') && !d.find('nav').is('div'),
    'filter, not': (d) => d.find('nav a').filter('.x').size() === 1 && d.find('nav a').not('.x').size() === 2,
    'next, prev': (d) => d.find('nav').next().attr('id') === 'cart',
  });
}
