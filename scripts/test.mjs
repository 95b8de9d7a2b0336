import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { root } from './build.mjs';
import { prepare } from './prepare.mjs';

/**
 * `npm test`: installs and builds what is missing, runs Jest with the arguments, and ends with a line of counts. With
 * `--all` (`npm run test:all`) it leaves no project out.
 */

/** Where Debian's package `chromium` keeps a software device of Vulkan, for the tests of WebGPU. */
const chromium = '/usr/lib/chromium';

function environment() {
  const env = { ...process.env };
  // Node 20 reads such a file at the start of every process, which dominates the start; no test asks a host whose
  // certificate is in it.
  delete env.NODE_EXTRA_CA_CERTS;
  const device = join(chromium, 'vk_swiftshader_icd.json');
  if (env.VK_ICD_FILENAMES === undefined && existsSync(device)) {
    env.VK_ICD_FILENAMES = device;
    env.LD_LIBRARY_PATH = [env.LD_LIBRARY_PATH, chromium].filter(Boolean).join(':');
  }
  return env;
}

function reportOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    console.error('Jest ended without a report.');
    const counts = { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 0, numPendingTests: 0 };
    return { ...counts, numTodoTests: 0, testResults: [] };
  }
}

/** A line for each failed test: its file, its name and the beginning of its message. */
function failuresOf({ testResults }) {
  const beginning = (text) => stripVTControlCharacters(text).trim().split('\n')[0];
  return testResults.flatMap(({ name, message, status, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    const lines = failed.map(({ fullName, failureMessages }) => `${fullName}: ${beginning(failureMessages[0])}`);
    // A file that could not be loaded has a heading as its first line.
    if (status === 'failed' && lines.length === 0) lines.push(beginning(message.slice(message.indexOf('\n'))));
    return lines.map((line) => `FAILED ${relative(root, name)}: ${line}`);
  });
}

const given = process.argv.slice(2).filter((argument) => argument !== '--all');
const isWhole = process.argv.includes('--all') || given.some((argument) => /^--(select|ignore)Projects/.test(argument));
const ignored = isWhole ? [] : ['--ignoreProjects', 'slow', 'scale-out'];
await prepare();
const folder = mkdtempSync(join(tmpdir(), 'darkroom-jest-'));
const report = join(folder, 'report.json');
const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
const { status } = spawnSync(
  process.execPath,
  [jest, ...ignored, '--json', '--outputFile', report, ...given],
  // Jest writes to standard error; the tested code logs to standard output.
  { cwd: root, stdio: ['inherit', 'ignore', 'inherit'], env: environment() },
);
const counts = reportOf(report);
rmSync(folder, { recursive: true, force: true });
const passed = counts.numPassedTests;
const skipped = counts.numPendingTests + counts.numTodoTests;
// A spec file that cannot be loaded has no tests to count; it is one failure.
const failed = counts.numFailedTests + counts.numRuntimeErrorTestSuites || Number(status !== 0);
for (const line of failuresOf(counts)) console.log(line);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;
