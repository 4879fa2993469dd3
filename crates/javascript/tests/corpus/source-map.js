import http from 'k6/http';
// What a bundler has made of src/main.ts.
function broken(given) { return given.missing.name; }
export default function () {
  http.get('BASE/');
  try { broken({}); } catch (error) { console.log(error.stack.split('\n')[1].trim()); }
}
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbInNyYy9tYWluLnRzIl0sIm5hbWVzIjpbXSwibWFwcGluZ3MiOiI7O0FBR0EifQ==
