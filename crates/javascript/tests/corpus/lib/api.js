import http from 'k6/http';

export const VERSION = '2.1';

export function withQuery(path, fields) {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${encodeURIComponent(value).replace(/%20/g, '+')}`);
  return `${path}?${pairs.join('&')}`;
}

export default class Api {
  #base;

  constructor(base) {
    this.#base = base;
  }

  get(path) {
    return http.get(`${this.#base}/v${parseInt(VERSION, 10)}${path}`, { headers: { Accept: 'application/json' } });
  }
}
