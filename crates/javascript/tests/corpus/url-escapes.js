import http from 'k6/http';

export default function () {
  http.get('BASE/region/The Forge');
  http.get('BASE/q?text=a b&ü=ß');
  http.get(encodeURI('BASE/ä/[x]?y=%'));
  http.get('BASE/already%20there?x=%2F#fragment');
  http.get('BASE?only=query');
  http.get('BASE');
  http.get(`  ${__ENV.BASE}/trimmed`.trim());
  http.get('BASE/a/../b/./c//d');
}
