import http from 'k6/http';

const users = JSON.parse(open('./nope.json'));

export default function () { http.get('BASE/'); }
