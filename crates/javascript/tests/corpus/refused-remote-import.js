import http from 'k6/http';
import { helper } from 'https://raw.githubusercontent.com/someone/k6-lib/main/helper.js';

export default function () {
  http.get(helper('BASE'));
}
