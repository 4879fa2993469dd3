import http from 'k6/http';
import { parseHTML } from 'k6/html';
import { check } from 'k6';

export default function () {
  let res = http.get('BASE/login');
  const doc = parseHTML(res.body);
  check(doc, {
    'title': (d) => d.find('head title').text() === 'Sign in',
    'attribute': (d) => d.find('form').attr('action') === '/session',
    'count': (d) => d.find('li').size() === 3,
    'each': (d) => d.find('li').map((i, el) => `${i}${el.text()}`).join() === '0one,1two,2three',
    'value': (d) => d.find('input[name=token]').val() === 's3cret',
    'missing': (d) => d.find('#none').attr('href') === undefined,
    'eq, first, last': (d) => d.find('li').eq(1).text() + d.find('li').first().text() + d.find('li').last().text() === 'twoonethree',
    'serialize': (d) => d.find('form').serialize().includes('token=s3cret'),
  });
  res = res.submitForm({
    formSelector: 'form',
    fields: { user: 'ann', password: 'p w' },
  });
  check(res, { 'signed in': (r) => r.status === 200 && r.html('h1').text() === 'Hello' });
  res = res.clickLink({ selector: 'a:nth-child(2)' });
  check(res, { 'link': (r) => r.url.endsWith('/profile') });
}
