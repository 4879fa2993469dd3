import http from 'k6/http';
import { base } from './lib/typed.ts';

export default function () {
  http.get(base);
}
