import redis from 'k6/experimental/redis';
import exec from 'k6/execution';

const client = new redis.Client('redis://localhost:6379');

export default async function () {
  await client.set('k', exec.vu.idInTest, 0);
}
