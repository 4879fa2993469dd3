import exec from 'k6/execution';

if (!__ENV.TOKEN) exec.test.abort('no TOKEN is given');

export default function () {
  console.log('an iteration');
}
