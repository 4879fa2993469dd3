import { SharedArray } from 'k6/data';
import { parseHTML } from 'k6/html';
import { check } from 'k6';

export const options = { iterations: 1 };

const shared = new SharedArray('half \ud800', () => [{ text: 'a\ud800b' }]);

export default function () {
  const page = parseHTML('<p class="a\ud800">x\ud800y</p><ul><li>1<li>2</ul>');
  check(shared, { 'an element keeps its text': (all) => all[0].text === 'a\ud800b' });
  check(page, { 'the page is read': (p) => p.find('p').text() === 'x\ufffdy' && p.find('li').size() === 2, 'a selector': (p) => p.find('.\ud800').size() === 0 });
}
