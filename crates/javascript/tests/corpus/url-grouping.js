import http from 'k6/http';
import { check } from 'k6';

export const options = {
  thresholds: {
    'http_reqs{name:PostsItemURL}': ['count==3'],
    'http_reqs{kind:template}': ['count==3'],
  },
};

export default function () {
  for (let id = 1; id <= 3; id++) {
    http.get(`BASE/posts/${id}`, { tags: { name: 'PostsItemURL' } });
  }
  for (let id = 1; id <= 3; id++) {
    http.get(http.url`BASE/comments/${id}?by=${'me'}`, { tags: { kind: 'template' } });
  }
}
