import http from 'k6/http';
import { open, SeekMode } from 'k6/experimental/fs';

const file = await open('data/users.csv');

export default async function () {
  const begin = new Uint8Array(4);
  const count = await file.read(begin);
  await file.seek(0, SeekMode.Start);
  const { name, size } = await file.stat();
  http.post('BASE/file', [count, String.fromCharCode(...begin), name, size > 10].join());
}
