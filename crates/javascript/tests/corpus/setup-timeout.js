import { sleep } from 'k6';

export const options = { iterations: 1, setupTimeout: '300ms' };

export function setup() {
  sleep(20);
}

export default function () {
  console.log('an iteration');
}
