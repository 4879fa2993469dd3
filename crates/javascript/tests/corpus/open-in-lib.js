import http from 'k6/http';
import { first } from './lib/opens.js';

export default function () {
  http.post('BASE/users', first);
}
