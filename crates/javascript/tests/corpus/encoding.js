import encoding from 'k6/encoding';
import { b64encode, b64decode } from 'k6/encoding';
import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const text = 'Schöne Grüße??>>';
  const kinds = ['std', 'rawstd', 'url', 'rawurl'];
  const encoded = kinds.map((kind) => b64encode(text, kind));
  check(encoded, {
    std: (e) => e[0] === 'U2Now7ZuZSBHcsO8w59lPz8+Pg==',
    rawstd: (e) => e[1] === 'U2Now7ZuZSBHcsO8w59lPz8+Pg',
    url: (e) => e[2] === 'U2Now7ZuZSBHcsO8w59lPz8-Pg==',
    rawurl: (e) => e[3] === 'U2Now7ZuZSBHcsO8w59lPz8-Pg',
    'and back': (e) => e.every((one, i) => b64decode(one, kinds[i], 's') === text),
    'bytes of it': (e) => b64decode('AP8Q') instanceof ArrayBuffer && new Uint8Array(b64decode('AP8Q')).join() === '0,255,16',
    'bytes to it': () => encoding.b64encode(new Uint8Array([0, 255, 16]).buffer) === 'AP8Q',
  });
  const credentials = `${__ENV.LOGIN || 'ann'}:${'pässword'}`;
  http.get('BASE/basic', { headers: { Authorization: `Basic ${encoding.b64encode(credentials)}` } });
  check(null, { 'bad base64 throws': () => { try { b64decode('***'); return false; } catch (e) { return true; } } });
}
