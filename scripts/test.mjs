import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { prepare } from './prepare.mjs';
import { softwareVulkan } from './vulkan.mjs';

/** Number of slowest spec files to list. */
const slowestShown = 10;

const root = dirname(import.meta.dirname);
const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
/**
 * Two more than the two cores of a small machine, because many tests wait for other processes, for locks and for time
 * to pass.
 */
const maxWorkers = ['--maxWorkers', '4'];
/**
 * For Jest and its workers, which have no idle core to collect garbage or optimise functions on, fill their heaps anew
 * with each spec file, and load more functions than they call: a tenth of their processor time. Newer V8s than Node
 * 20's choose by other rules what they optimise.
 */
const nodeOptions = [
  ...['--single-threaded-gc', '--no-memory-reducer', '--min-semi-space-size=32', '--max-semi-space-size=128'],
  ...['--max-lazy', ...(process.versions.node.startsWith('20.') ? ['--interrupt-budget=600000'] : [])],
];

/** The environment of the tests, of which many start processes. */
function environment() {
  const env = { ...process.env, ...softwareVulkan() };
  // Node 20 reads such a file whenever a process starts, which takes longer than all else of the start; no test asks a
  // host whose certificate is in it.
  delete env.NODE_EXTRA_CA_CERTS;
  return env;
}

/**
 * `--changed` is Jest's `--changedSince main`: everything the branch has changed, committed or not. `--changed=<ref>`
 * compares with another commit.
 */
const args = process.argv
  .slice(2)
  .map((arg) => arg.replace(/^--changed(?:=(.*))?$/, (_, ref) => `--changedSince=${ref ?? 'main'}`));

/** Runs Jest's watch mode on the terminal. @returns its exit status. */
function watch() {
  return spawnSync(process.execPath, [...nodeOptions, jest, ...maxWorkers, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: environment(),
  }).status;
}

/** Runs Jest once and prints a final line of counts. @returns the exit status. */
function runOnce() {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-jest-'));
  const file = join(folder, 'report.json');
  const reporters = ['--reporters', 'default', '--reporters', join(import.meta.dirname, 'jest-reporter.mjs')];
  const { status } = spawnSync(
    process.execPath,
    // `--reporters` takes all names behind it, so those of files go first.
    [...nodeOptions, jest, ...maxWorkers, '--useStderr', ...args, ...reporters],
    {
      cwd: root,
      // The tested code logs to standard output, which would hide Jest's messages.
      stdio: ['inherit', 'ignore', 'inherit'],
      env: { ...environment(), TEST_REPORT: file },
    },
  );
  const report = read(file);
  rmSync(folder, { recursive: true, force: true });
  const { passed, skipped, files } = report;
  const failed = status !== 0 && report.failed === 0 ? 1 : report.failed;
  printFailures(files);
  printSlowest(files);
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return failed > 0 ? 1 : 0;
}

function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    console.error('Jest ended without a report.');
    return { passed: 0, failed: 0, skipped: 0, files: [] };
  }
}

function printFailures(files) {
  const failures = files.flatMap(({ name, failures }) => failures.map((failure) => `  ${name}: ${failure}`));
  if (failures.length > 0) console.log(`\nFailed:\n${failures.join('\n')}`);
}

function printSlowest(files) {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestShown);
  if (slowest.length > 0) console.log('\nThe slowest spec files:');
  for (const { name, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(7)} s  ${name}`);
}

await prepare();
process.exitCode = args.some((arg) => /^--watch(All)?$/.test(arg)) ? watch() : runOnce();
