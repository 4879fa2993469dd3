import http from 'k6/http';
import { check } from 'k6';

export default async function () {
  const data = new Uint8Array([97, 98, 99]);
  const digest = await crypto.subtle.digest('SHA-256', data);
  const hex = Array.from(new Uint8Array(digest)).map((b) => b.toString(16).padStart(2, '0')).join('');
  const random = crypto.getRandomValues(new Uint32Array(4));
  const id = crypto.randomUUID();
  check(null, {
    'digest': () => hex === 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    'random values': () => random.length === 4 && new Set(random).size > 1,
    'uuid': () => /^[0-9a-f-]{36}$/.test(id) && id[14] === '4',
  });
  const key = await crypto.subtle.importKey('raw', new Uint8Array([74, 101, 102, 101]), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const text = 'what do ya want for nothing?';
  const signed = await crypto.subtle.sign('HMAC', key, Uint8Array.from(text, (c) => c.charCodeAt(0)));
  http.get('BASE/signed', { headers: { 'X-Sign': Array.from(new Uint8Array(signed).slice(0, 4)).join('.') } });
}
