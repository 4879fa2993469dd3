import http from 'k6/http';
export const options = { iterations: 3, thresholds: { 'http_reqs{name:PostsItemURL}': ['count==3'] } };
export default function () {
  const id = __ITER + 1;
  http.get(http.url`BASE/posts/${id}`);
  http.get(`BASE/posts/${id}`, { tags: { name: 'PostsItemURL' } });
}
