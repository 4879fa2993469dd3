// Runs the tests of the pages. A file in which a test failed is run once more, without others: browsers wait for pages on a machine that others share.
import { readdirSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

// The files in which a test failed.
async function failing(files, concurrency) {
  const failed = new Set();
  const tests = run({ files, concurrency });
  tests.on('test:fail', ({ file, name }) => failed.add(files.find((path) => path === file || path === name) ?? file));
  tests.compose(new spec()).pipe(process.stdout);
  await new Promise((resolve) => tests.on('end', resolve));
  return [...failed];
}

const here = new URL('test/', import.meta.url).pathname;
const files = readdirSync(here).filter((name) => name.endsWith('.test.mjs')).map((name) => here + name);
const failed = await failing(files, true);
if (failed.length > 0) {
  console.log(`\n== again, alone: ${failed.join(' ')}\n`);
  process.exitCode = (await failing(failed, 1)).length > 0 ? 1 : 0;
}
