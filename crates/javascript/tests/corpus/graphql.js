import http from 'k6/http';
import { check } from 'k6';

const accessToken = __ENV.TOKEN;
const query = `
  query FindFirstIssue {
    repository(owner: "grafana", name: "k6") {
      issues(first: 1) { edges { node { id number title } } }
    }
  }`;

const mutation = (id) => `
  mutation AddReaction {
    addReaction(input: { subjectId: "${id}", content: HOORAY }) { reaction { content } }
  }`;

export default function () {
  const headers = { Authorization: `Bearer ${accessToken}`, 'Content-Type': 'application/json' };
  const res = http.post('BASE/graphql', JSON.stringify({ query: query }), { headers });
  check(res, { 'no errors': (r) => !r.json().errors });
  const { data: { repository: { issues: { edges: [{ node: issue }] } } } } = JSON.parse(res.body);
  console.log(issue.id, issue.number, issue.title);
  http.post('BASE/graphql', JSON.stringify({ query: mutation(issue.id) }), { headers: headers });
}
