import http from 'k6/http';

function endless(depth) {
  return endless(depth + 1) + 1;
}

export default function () {
  http.get('BASE/');
  try {
    endless(0);
  } catch (error) {
    console.log(error.name, error.stack.split('\n')[1].trim());
  }
}
