import { check } from 'k6';
import { here, text } from './lib/places.js';

export const options = { iterations: 1 };

const users = open(import.meta.resolve('./data/users.txt'));
const again = open(here('../data/users.txt'));

export default function () {
  check(users, {
    'a file beside the script': (u) => u.length > 0,
    'the same from a library': (u) => u === again && u === text,
    'a module of k6': () => import.meta.resolve('k6/http') === 'k6/http',
    'a URL': () => /^file:\/\/.*\/data\/users\.txt$/.test(import.meta.resolve('./data/users.txt')),
  });
}
