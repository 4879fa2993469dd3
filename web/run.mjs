// Runs the tests of the pages. A test that failed is run once more, without others: browsers wait for pages on a machine that others share.
import { readdirSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

// The tests that failed, by name, and their files; and those that passed. A file that fails as a whole has no names.
async function tried(options) {
  const failed = { files: new Set(), names: new Set(), passed: new Set() };
  const tests = run(options);
  tests.on('test:fail', ({ file, name }) => {
    const of = options.files.find((path) => path === file || path === name);
    failed.files.add(of ?? file);
    if (of !== name) failed.names.add(name);
  });
  tests.on('test:pass', ({ name, skip }) => skip === undefined && failed.passed.add(name));
  tests.compose(new spec()).pipe(process.stdout);
  await new Promise((resolve) => tests.on('end', resolve));
  return failed;
}

const here = new URL('test/', import.meta.url).pathname;
const files = readdirSync(here).filter((name) => name.endsWith('.test.mjs')).map((name) => here + name);
const failed = await tried({ files, concurrency: true });
if (failed.files.size > 0) {
  const names = [...failed.names];
  console.log(`\n== again, alone: ${(names.length > 0 ? names : [...failed.files]).join(', ')}\n`);
  const testNamePatterns = names.map((name) => new RegExp(`^${RegExp.escape?.(name) ?? name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`));
  const again = await tried({ files: [...failed.files], concurrency: 1, ...(names.length > 0 ? { testNamePatterns } : {}) });
  // A name that matches no test would pass as nothing.
  process.exitCode = again.files.size > 0 || !names.every((name) => again.passed.has(name)) ? 1 : 0;
}
