import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const buffer = new ArrayBuffer(8);
  const view = new DataView(buffer);
  view.setUint16(0, 0xcafe);
  view.setFloat32(4, 1.5, true);
  http.post('BASE/frame', buffer);
  const padded = new Uint8Array(4);
  padded.set([1, 2], 1);
  http.post('BASE/part', padded.subarray(1, 3).slice().buffer);
  check(null, {
    'clamped': () => new Uint8ClampedArray([300, -1])[0] === 255,
    'wraps': () => new Uint8Array([257])[0] === 1 && new Int8Array([200])[0] === -56,
    'big': () => new BigInt64Array([5n])[0] === 5n,
    'from, map, sort': () => Uint8Array.from([3, 1, 2]).sort().map((x) => x * 2).join() === '2,4,6',
  });
}
