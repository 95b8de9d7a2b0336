import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { prepare } from './prepare.mjs';

/**
 * Runs the golden tests and prints the differences from diffusers. Values in decibels are similarities: more is better.
 */
await prepare();
const root = dirname(import.meta.dirname);
const folder = mkdtempSync(join(tmpdir(), 'darkroom-golden-'));
const table = join(folder, 'table.jsonl');
const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
const args = [jest, ...process.argv.slice(2), '--selectProjects', 'golden', '--silent'];
const { status } = spawnSync(process.execPath, args, {
  cwd: root,
  env: { ...process.env, GOLDEN_TABLE: table },
  stdio: 'inherit',
});
const rows = existsSync(table)
  ? readFileSync(table, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  : [];
rmSync(folder, { recursive: true, force: true });

const shown = (row, value) =>
  row.name.endsWith('(-dB)') ? `${(-value).toFixed(1)} dB` : value === 0 ? '0' : value.toExponential(1);
const cells = [
  ['golden', 'cases', 'worst error', 'tolerance'],
  ...rows.map((row) => [
    row.name.replace(' (-dB)', ''),
    String(row.cases),
    shown(row, row.worst),
    shown(row, row.tolerance),
  ]),
];
const widths = cells[0].map((_, column) => Math.max(...cells.map((line) => line[column].length)));
console.log();
for (const line of cells)
  console.log(
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('   '),
  );
process.exitCode = status ?? 1;
