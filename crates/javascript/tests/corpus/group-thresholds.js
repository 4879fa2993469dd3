import http from 'k6/http';
import { group, sleep, check } from 'k6';
export const options = { iterations: 3, thresholds: { 'group_duration{group:::buy}': ['avg>40', 'max<20000'], 'http_req_duration{group:::buy::pay}': ['count==3', 'max<9999'].slice(1) } };
export default function () {
  const n = group('buy', () => {
    http.get('BASE/cart');
    group('pay', function () { http.post('BASE/pay'); sleep(0.05); });
    return 7;
  });
  check(n, { 'value of the group': (n) => n === 7 });
}
