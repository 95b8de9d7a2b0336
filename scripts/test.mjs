import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { prepare } from './prepare.mjs';

/** Runs Jest with the arguments given and ends with one plain line of counts. */
await prepare();
const root = dirname(import.meta.dirname);
const folder = mkdtempSync(join(tmpdir(), 'darkroom-jest-'));
const report = join(folder, 'report.json');
const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
const args = ['--maxWorkers', '2', ...process.argv.slice(2), '--json', '--outputFile', report];
// With --json Jest writes its report to standard output too, which the file makes superfluous.
const { status } = spawnSync(process.execPath, [jest, ...args], { cwd: root, stdio: ['inherit', 'ignore', 'inherit'] });
let passed = 0;
let failed = 0;
let skipped = 0;
try {
  const result = JSON.parse(readFileSync(report, 'utf8'));
  passed = result.numPassedTests;
  // A spec file that cannot be loaded has no test to count, and is one failure.
  failed = result.numFailedTests + result.numRuntimeErrorTestSuites;
  skipped = result.numPendingTests + result.numTodoTests;
} catch {
  console.error('Jest ended without a report.');
}
rmSync(folder, { recursive: true, force: true });
if (status !== 0 && failed === 0) failed = 1;
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;
