import http from 'k6/http';

const profiles = {
  smoke: { vus: 1, iterations: 2 },
  load: { stages: [{ duration: '10m', target: 100 }] },
};

function pick(name) {
  const profile = profiles[name];
  if (!profile) {
    throw new Error(`no profile ${name}; there are ${Object.keys(profiles)}`);
  }
  return profile;
}

export const options = {
  ...pick(__ENV.PROFILE || 'load'),
  insecureSkipTLSVerify: __ENV.INSECURE === 'true',
  thresholds: __ENV.STRICT ? { http_req_failed: ['rate==0'] } : {},
  tags: { env: __ENV.TARGET_ENV ?? 'local' },
};

export default function () {
  http.get(`${__ENV.BASE}/${__ENV.PROFILE}/${__ENV.MISSING}/${typeof __ENV.STRICT}`);
}
