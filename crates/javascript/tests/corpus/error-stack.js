import http from 'k6/http';
import { check } from 'k6';

function parse(text) {
  return JSON.parse(text).deep.field;
}

export default function () {
  const res = http.get('BASE/broken');
  for (const text of [res.body, '{}', 'no JSON']) {
    try {
      parse(text);
    } catch (e) {
      console.error(`parse: ${e.name}`);
      check(e, {
        'begins with its text': (x) => x.stack.startsWith(`${x.name}: ${x.message}`),
        'names function and line': (x) => /parse.*error-stack\.js:5/.test(x.stack),
        'is an Error': (x) => x instanceof Error && x.constructor.name === x.name,
      });
    }
  }
}
