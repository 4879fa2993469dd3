import http from 'k6/http';
import secrets from 'k6/secrets';

export default async function () { http.get('BASE/', { headers: { X: await secrets.get('k') } }); }
