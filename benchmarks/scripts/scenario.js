// The same for k6: one GET with one check an iteration, by 64 users.
import http from "k6/http";
import { check } from "k6";

export default function () {
  const answer = http.get(__ENV.URL);
  check(answer, { 200: (answer) => answer.status === 200 });
}
