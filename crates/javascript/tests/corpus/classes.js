import http from 'k6/http';
import { check } from 'k6';

class Page {
  static #count = 0;
  static get count() {
    return Page.#count;
  }
  #path;
  visits = 0;
  constructor(path) {
    this.#path = path;
    Page.#count++;
  }
  get url() {
    return `${__ENV.BASE}${this.#path}`;
  }
  set path(value) {
    this.#path = value;
  }
  open(params = {}) {
    this.visits += 1;
    return http.get(this.url, params);
  }
  toString() {
    return `Page(${this.#path})`;
  }
}

class Product extends Page {
  constructor(id, { locale = 'de', ...rest } = {}) {
    super(`/product/${id}`);
    this.locale = locale;
    Object.assign(this, rest);
  }
  open() {
    return super.open({ headers: { 'Accept-Language': this.locale } });
  }
  static {
    Product.kind = 'product';
  }
  static async make(id) {
    return new Product(id, { locale: 'fr', size: 3 });
  }
}

export default async function () {
  const home = new Page('/');
  home.open();
  home.path = '/moved';
  home.open();
  const product = await Product.make(5);
  product.open();
  check(product, {
    'instanceof': (p) => p instanceof Product && p instanceof Page,
    'fields': (p) => p.visits === 1 && p.size === 3 && home.visits === 2,
    'static': () => Page.count === 2 && Product.kind === 'product' && `${product}` === 'Page(/product/5)',
    'private is private': (p) => !Object.keys(p).includes('#path'),
    'symbols': () => [...{ *[Symbol.iterator]() { yield 1; yield* [2, 3]; } }].join() === '1,2,3',
  });
}
