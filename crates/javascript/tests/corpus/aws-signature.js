import http from 'k6/http';
import { hmac, sha256 } from 'k6/crypto';

const config = {
  region: 'us-east-1',
  service: 'iam',
  accessKey: 'AKIDEXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};

function signingKey(date) {
  const kDate = hmac('sha256', 'AWS4' + config.secretKey, date, 'binary');
  const kRegion = hmac('sha256', kDate, config.region, 'binary');
  const kService = hmac('sha256', kRegion, config.service, 'binary');
  return hmac('sha256', kService, 'aws4_request', 'binary');
}

export default function () {
  const amzDate = '20150830T123600Z';
  const date = amzDate.substring(0, 8);
  const query = { Version: '2010-05-08', Action: 'ListUsers' };
  const canonicalQuery = Object.keys(query).sort().map((k) => `${encodeURIComponent(k)}=${encodeURIComponent(query[k])}`).join('&');
  const headers = {
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
    host: 'iam.amazonaws.com',
    'x-amz-date': amzDate,
  };
  const names = Object.keys(headers).sort();
  const canonical = ['GET', '/', canonicalQuery, ...names.map((n) => `${n}:${headers[n]}`), '', names.join(';'), sha256('', 'hex')].join('\n');
  const scope = `${date}/${config.region}/${config.service}/aws4_request`;
  const toSign = `AWS4-HMAC-SHA256\n${amzDate}\n${scope}\n${sha256(canonical, 'hex')}`;
  const signature = hmac('sha256', signingKey(date), toSign, 'hex');
  http.get(`${__ENV.BASE}/?${canonicalQuery}`, {
    headers: {
      ...headers,
      Authorization: `AWS4-HMAC-SHA256 Credential=${config.accessKey}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
    },
  });
}
