import { parseHTML } from 'k6/html';
import { check } from 'k6';
export const options = { thresholds: { checks: ['rate==1.0'] } };
export default function () {
  const doc = parseHTML('<ul id="l" class="big red"><li>one</li><li lang="de">zwei</li></ul><a href="https://u:p@h.test:81/p/q?x=1#f" target="_b">go</a><input type="checkbox" name="c" checked disabled>');
  const el = doc.find('#l').get(0);
  const a = doc.find('a').get(0);
  const c = doc.find('input').get(0);
  check(null, {
    nodeName: () => el.nodeName() === 'ul' || el.nodeName() === 'UL',
    id: () => el.id() === 'l' && el.className() === 'big red',
    classList: () => el.classList().join() === 'big,red',
    firstChild: () => el.firstChild().textContent() === 'one',
    lastElementChild: () => el.lastElementChild().lang() === 'de',
    childElementCount: () => el.childElementCount() === 2,
    children: () => el.children().length === 2,
    hasAttribute: () => el.hasAttribute('class') && !el.hasAttribute('nope'),
    getAttribute: () => a.getAttribute('target') === '_b',
    parent: () => el.firstChild().parentElement().id() === 'l',
    nextSibling: () => el.firstElementChild().nextElementSibling().innerHTML() === 'zwei',
    'parts of href': () => [a.hostname(), a.port(), a.pathname(), a.search(), a.hash(), a.protocol(), a.username(), a.password()].join() === 'h.test,81,/p/q,?x=1,#f,https:,u,p',
    checkbox: () => c.checked() === true && c.disabled() === true && c.type() === 'checkbox' && c.name() === 'c',
    isEqualNode: () => el.isEqualNode(doc.find('ul').get(0)),
    querySelector: () => el.querySelector('li[lang]').textContent() === 'zwei' && el.querySelectorAll('li').length === 2,
  });
}
