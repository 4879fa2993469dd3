import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

const settings = JSON.parse(open('./data/products.json'));
const base = settings.base.url; // there is no base

export default function () {
  http.get(base);
}
