import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const name = '  Łódź Straße 😀 ';
  const slug = name.trim().toLowerCase().normalize('NFD').replace(/[\u0300-\u036f]/g, '').replace(/ł/g, 'l').replace(/ß/g, 'ss').replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
  http.get(`${__ENV.BASE}/s/${slug}`);
  check(name, {
    'length counts UTF-16 units': () => '😀'.length === 2 && [...'😀'].length === 1 && '😀'.codePointAt(0) === 0x1f600,
    'case': () => 'straße'.toUpperCase() === 'STRASSE' && 'İ'.toLowerCase().length === 2 && 'ΑΣ'.toLowerCase() === 'ας',
    'pad, repeat, at': () => '7'.padStart(3, '0') + '-'.repeat(2) + 'abc'.at(-1) === '007--c',
    'search': () => 'needle in'.includes('le i') && 'abc'.startsWith('b', 1) && 'abcabc'.lastIndexOf('b') === 4,
    'slices': () => 'abcdef'.slice(-3, -1) + 'abcdef'.substring(4, 1) + 'abcdef'.substr(-2, 1) === 'debcde',
    'split': () => 'a,b,,c'.split(',', 3).length === 3 && ''.split(',').length === 1 && 'abc'.split('').join('|') === 'a|b|c',
    'compare': () => ['b', 'a', 'C'].sort().join('') === 'Cab' && ['é', 'z', 'e'].sort().join('') === 'ezé',
    'escapes': () => escape('ä b') === '%E4%20b' && encodeURIComponent("a'(b)*~!") === "a'(b)*~!" && decodeURIComponent('%F0%9F%98%80') === '😀',
    'coercions': () => '5' * '2' === 10 && '5' + 2 === '52' && [] + {} === '[object Object]' && +'' === 0 && isNaN(+'1x'),
  });
}
