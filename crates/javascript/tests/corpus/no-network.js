import { check, group } from 'k6';
import { Counter } from 'k6/metrics';

const steps = new Counter('steps');

export const options = { iterations: 5 };

function fibonacci(n, known = {}) {
  if (n in known) return known[n];
  return (known[n] = n < 2 ? n : fibonacci(n - 1, known) + fibonacci(n - 2, known));
}

export default () => {
  group('compute', () => {
    check(fibonacci(50), { 'fib(50)': (n) => n === 12586269025 });
    steps.add(1);
  });
};
