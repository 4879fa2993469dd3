import crypto from 'k6/crypto';
import { check } from 'k6';

export default function () {
  const hasher = crypto.createHash('sha1');
  hasher.update('hello ');
  hasher.update('world');
  const mac = crypto.createHMAC('sha256', 'Jefe');
  mac.update('what do ya want ');
  mac.update('for nothing?');
  check(crypto, {
    md4: (c) => c.md4('abc', 'hex') === 'a448017aaf21d8525fc10ae87aa6729d',
    md5: (c) => c.md5('hello world', 'hex') === '5eb63bbbe01eeed093cb22bb8f5acdc3',
    sha1: () => hasher.digest('hex') === '2aae6c35c94fcfb415dbe95f408b9ce91ee846ed',
    sha256: (c) => c.sha256('abc', 'hex') === 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    'sha256 in base64': (c) => c.sha256('hello world!', 'base64') === 'dQnlvaDHYtK6x/kNdYtbImP6Acy8VCq1498WO+CObKk=',
    sha384: (c) => c.sha384('abc', 'hex').startsWith('cb00753f45a35e8bb5a03d699ac65007'),
    sha512: (c) => c.sha512('abc', 'hex').startsWith('ddaf35a193617abacc417349ae204131'),
    'sha512/256': (c) => c.sha512_256('abc', 'hex').startsWith('53048e2681941ef9'),
    ripemd160: (c) => c.ripemd160('abc', 'hex') === '8eb208f7e05d987a9b044a8e98c6b087f15a0bfc',
    // RFC 4231, test case 2
    hmac: (c) => c.hmac('sha256', 'Jefe', 'what do ya want for nothing?', 'hex') === '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    'hmac in steps': () => mac.digest('hex').startsWith('5bdcc146'),
    'binary key': (c) => c.hmac('md5', new Uint8Array(16).fill(0x0b).buffer, 'Hi There', 'hex') === '9294727a3638bb1c13f48ef8158bfc9d',
    binary: (c) => new Uint8Array(c.md5('abc', 'binary')).slice(0, 3).join() === '144,1,80',
    rawurl: (c) => c.md5('abc', 'base64rawurl') === 'kAFQmDzST7DWlj99KOF_cg',
    'random bytes': (c) => c.randomBytes(42).byteLength === 42,
  });
}
