import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const res = http.get('BASE/store');
  check(res, {
    'field': (r) => r.json('name.first') === 'Tom',
    'index': (r) => r.json('children.1') === 'Alex',
    'count': (r) => r.json('children.#') === 3,
    'each': (r) => r.json('friends.#.last').join() === 'Murphy,Craig,Murphy',
    'one that fits': (r) => r.json('friends.#(last=="Murphy").first') === 'Dale',
    'all that fit': (r) => r.json('friends.#(age>45)#.first').length === 2,
    'escaped dot': (r) => r.json('fav\\.movie') === 'Deer Hunter',
    'wildcard': (r) => r.json('child*.2') === 'Jack',
    'missing': (r) => r.json('no.such.path') === undefined,
    'number': (r) => r.json('age') === 37 && r.json('big') === 12345678901,
    'null': (r) => r.json('nothing') === null,
    'object': (r) => r.json('name').last === 'Anderson',
    'whole': (r) => Object.keys(r.json())[0] === 'name',
  });
}
