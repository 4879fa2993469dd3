import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';
export const options = { scenarios: { main: { executor: 'shared-iterations', vus: 3, iterations: 30 } } };
export function setup() {
  const users = Array.from({ length: 5000 }, (_, i) => ({ id: i, name: `user ${i}`, tags: ['a', 'b', { deep: [i, null, true] }], note: 'ünïcödé \u2028 "quoted" \\' }));
  return { users, when: new Date(Date.UTC(2024, 1, 29)), big: 2 ** 53, tiny: 1e-7, nan: NaN, map: new Map([[1, 2]]), bytes: new Uint8Array([1, 2]) };
}
export default function ({ users, when, big, tiny, nan, map, bytes }) {
  const user = users[exec.scenario.iterationInTest];
  check(user, {
    'its own user': (u) => u.id === exec.scenario.iterationInTest && u.tags[2].deep[0] === u.id && u.note === 'ünïcödé \u2028 "quoted" \\',
    'as JSON has it': () => when === '2024-02-29T00:00:00.000Z' && big === 9007199254740992 && tiny === 1e-7 && nan === null && JSON.stringify(map) === '{}' && JSON.stringify(bytes) === '{"0":1,"1":2}',
  });
  http.get(`BASE/users/${user.id}`);
}
export function teardown({ users }) { http.del(`BASE/users?count=${users.length}`); }
