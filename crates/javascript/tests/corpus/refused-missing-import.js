import http from 'k6/http';
import { helper } from './lib/nowhere.js';

export default function () {
  helper(http);
}
