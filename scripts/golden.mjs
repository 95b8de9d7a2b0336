import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './build.mjs';
import { prepare } from './prepare.mjs';

/**
 * Runs the golden tests and prints the differences from diffusers. Values in decibels are negative similarities.
 */
await prepare();
const folder = mkdtempSync(join(tmpdir(), 'darkroom-golden-'));
const table = join(folder, 'table.jsonl');
const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
const args = [jest, ...process.argv.slice(2), '--selectProjects', 'golden', '--silent'];
const env = { ...process.env, GOLDEN_TABLE: table };
const { status } = spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' });
const lines = existsSync(table) ? readFileSync(table, 'utf8').trim().split('\n').sort() : [];
rmSync(folder, { recursive: true, force: true });
const rows = lines.map((line) => JSON.parse(line));
console.table(Object.fromEntries(rows.map(({ name, ...row }) => [name, { ...row, worst: row.worst.toPrecision(2) }])));
process.exitCode = status ?? 1;
