import http from 'k6/http';
import encoding from 'k6/encoding';
import { check, group, fail } from 'k6';

export function authenticateUsingOauth(id, secret, scope, resource) {
  let url;
  const requestBody = { scope: scope };
  if (typeof resource == 'string') {
    url = `${__ENV.BASE}/${id}/oauth2/v2.0/token`;
    requestBody['grant_type'] = 'client_credentials';
    requestBody['resource'] = resource;
  } else if (typeof resource == 'object' && resource.hasOwnProperty('username')) {
    url = `${__ENV.BASE}/${id}/oauth2/v2.0/token?password`;
    requestBody['grant_type'] = 'password';
    requestBody['username'] = resource.username;
    requestBody['password'] = resource.password;
  } else {
    throw 'resource should be either a string or an object containing username and password';
  }
  const encoded = encoding.b64encode(`${id}:${secret}`);
  const response = http.post(url, requestBody, { auth: 'basic', headers: { Authorization: `Basic ${encoded}` } });
  return response.json();
}

export function setup() {
  const byClient = authenticateUsingOauth('tenant', 'shh', 'read', 'https://graph.test');
  const byPassword = authenticateUsingOauth('tenant', 'shh', 'read', { username: 'ann', password: 'a b' });
  if (!byClient.access_token) fail('no token');
  return { tokens: [byClient, byPassword].map((a) => a.access_token) };
}

export default function ({ tokens }) {
  group('api', () => {
    tokens.forEach((token) => {
      const claims = JSON.parse(encoding.b64decode(token.split('.')[1], 'rawurl', 's'));
      check(claims, { 'is for us': (c) => c.aud === 'api' && c.exp > Date.now() / 1000 });
      http.get('BASE/api', { headers: { Authorization: 'Bearer ' + token } });
    });
  });
}
