// The dashboard of contrib/, held against the types that Grafana publishes of its schema.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
const dashboard = () => JSON.parse(readFileSync(join(here, '../../contrib/grafana/brunt.json'), 'utf8'));

/** What the compiler complains about in a dashboard; written as literals, so that a field that is unknown is an error. */
function complaints(board) {
  const drawn = board.panels.filter((panel) => panel.type === 'timeseries');
  assert.ok(drawn.length > 10, `${drawn.length} charts`);
  const panels = 'raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
  const text = `
import type { Dashboard } from '@grafana/schema';
import type { FieldConfig, Options } from '@grafana/schema/dist/esm/${panels}';
// JSON has the values of enumerations, not their names.
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
export const board: Dashboard = ${JSON.stringify(board)};
export const options: Plain<Options>[] = ${JSON.stringify(drawn.map((panel) => panel.options))};
export const drawn: Plain<FieldConfig>[] = ${JSON.stringify(drawn.map((panel) => panel.fieldConfig.defaults.custom))};
`;
  // Beside the modules, so that the compiler finds them.
  const folder = mkdtempSync(join(here, '../node_modules/.dashboard-'));
  try {
    writeFileSync(join(folder, 'board.mts'), text);
    const how = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', ''];
    const done = spawnSync(process.execPath, [compiler, ...how, join(folder, 'board.mts')], { encoding: 'utf8' });
    return { status: done.status, said: done.stdout + done.stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('the dashboard is one by the types of Grafana', () => {
  assert.deepEqual(complaints(dashboard()), { status: 0, said: '' });
});

test('a field that Grafana does not know is found', () => {
  const board = dashboard();
  board.panels[1].fieldConfig.defaults.units = 's';
  board.templating.list[0].hide = 'no';
  const { status, said } = complaints(board);
  assert.notEqual(status, 0);
  assert.match(said, /"units"/);
  assert.match(said, /hide|VariableHide/);
});
