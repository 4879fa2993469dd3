export const options = { iterations: 1 };
export default function () {
  console.log('a', 1, true, null, undefined);
  console.log({ a: [1, { b: 'x' }] });
  console.log([1, 'two']);
  console.warn(`multi
line`);
  console.log(new Error('boom').message, String(Symbol('s')));
  console.debug('not shown by default?');
  console.error('end');
}
