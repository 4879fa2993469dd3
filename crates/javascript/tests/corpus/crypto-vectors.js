import crypto from 'k6/crypto';
import { sha256, hmac, md5, createHash, createHMAC, randomBytes } from 'k6/crypto';
import { check } from 'k6';
export default function () {
  const h = createHash('sha1'); h.update('hello '); h.update('world');
  const m = createHMAC('sha256', 'key'); m.update('The quick brown fox jumps over the lazy dog');
  check(null, {
    sha256: () => sha256('', 'hex') === 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    md5: () => crypto.md5('hello world', 'hex') === '5eb63bbbe01eeed093cb22bb8f5acdc3' && md5('', 'base64') === '1B2M2Y8AsgTpgAmY7PhCfg==',
    hasher: () => h.digest('hex') === '2aae6c35c94fcfb415dbe95f408b9ce91ee846ed',
    hmac: () => m.digest('hex') === 'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8' && hmac('sha256', 'key', 'The quick brown fox jumps over the lazy dog', 'hex') === m.digest('hex'),
    base64url: () => sha256('a', 'base64rawurl') === 'ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs',
    binary: () => sha256('a', 'binary') instanceof ArrayBuffer && sha256('a', 'binary').byteLength === 32,
    random: () => randomBytes(16).byteLength === 16,
    sha512: () => crypto.sha512('abc', 'hex').startsWith('ddaf35a193617aba') && crypto.ripemd160('', 'hex') === '9c1185a5c5e9fc54612808977ee8f548b2258d31',
  });
}
