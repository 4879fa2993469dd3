import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
import { SharedArray } from 'k6/data';
import http from 'k6/http';
import { check } from 'k6';
const text = 'name;age;note\n"Ann; A";30;"said ""hi"" x"\nBob;;x\n\n';
const rows = new SharedArray('rows', () => papaparse.parse(text, { header: true, skipEmptyLines: true }).data);
const typed = papaparse.parse('a,b\n1,true\n2.5,x', { header: true, dynamicTyping: true });
export const options = { vus: 1, iterations: 2 };
export default function () {
  const row = rows[__ITER % rows.length];
  http.post('BASE/u', { name: row.name, age: row.age, note: row.note });
  check(typed, {
    'guesses the delimiter': () => rows.length === 2,
    types: (t) => t.data[0].a === 1 && t.data[0].b === true && t.data[1].a === 2.5 && t.data[1].b === 'x',
    meta: (t) => t.meta.fields.join() === 'a,b' && t.meta.delimiter === ',' && t.errors.length === 0,
    'without header': () => JSON.stringify(papaparse.parse('1,2\n3,4').data) === '[["1","2"],["3","4"]]',
    unparse: () => papaparse.unparse([{ a: 1, b: 'x,y' }]) === 'a,b\r\n1,"x,y"',
  });
}
