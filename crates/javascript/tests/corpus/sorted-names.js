import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const people = http.get('BASE/people').json();
  people.sort((a, b) => a.name.localeCompare(b.name));
  check(people, { 'as in a phone book': (p) => p.map((x) => x.name).join() === 'adam,Änne,Bert,Zoë' });
  people.sort((a, b) => b.age - a.age || a.name.localeCompare(b.name));
  http.post('BASE/oldest', people.map(({ name }) => name)[0]);
}
