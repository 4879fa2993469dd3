import http from 'k6/http';

interface User { id: number }

export default function (): void {
  const u: User = { id: 1 };
  http.get('BASE/' + u.id);
}
