import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { installIfNeeded, npm } from './install.mjs';

const help = `npm run test:node-versions -- [major version …] [--step build|unit|golden|e2e …] [--tests pattern]

Builds and runs the tests under the newest release of Node 20, 22 and 24, or of the versions given.
  --step    only this step; may be given several times
  --tests   only spec files whose path matches`;

const root = dirname(import.meta.dirname);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    step: { type: 'string', multiple: true },
    tests: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
const tests = (project) => [
  'scripts/test.mjs',
  ...['--selectProjects', project],
  // Torture tests measure a whole service under faults; results depend on the machine, not on the version of Node.
  ...['--testPathIgnorePatterns', 'torture'],
  ...(values.tests ? ['--testPathPatterns', values.tests] : []),
];
const steps = {
  build: ['scripts/build.mjs'],
  unit: tests('unit'),
  golden: tests('golden'),
  e2e: tests('e2e'),
};

/** Installs the newest release of a major version from the npm package `node`. @returns the path of the program. */
function program(major) {
  const folder = join(root, '.cache', 'node', major);
  mkdirSync(folder, { recursive: true });
  // The package's own script downloads the build for this platform.
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, allowScripts: { node: true } }));
  const status = npm(['install', '--no-save', '--no-audit', '--no-fund', `node@${major}`], { cwd: folder });
  if (status !== 0) throw new Error(`Node ${major} could not be fetched.`);
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  return join(folder, 'node_modules', 'node', 'bin', name);
}

/** @returns the step's result, as a line of the table. */
function run(node, version, step) {
  console.log(`\n== Node ${version}: ${step}`);
  const startedAt = performance.now();
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const { status } = spawnSync(node, steps[step], { cwd: root, stdio: 'inherit', env });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  return { version, step, passed: status === 0, seconds };
}

const chosen = values.step ?? Object.keys(steps);
const unknown = chosen.filter((step) => !(step in steps));
if (values.help || unknown.length > 0) {
  console.log(help);
  process.exit(unknown.length > 0 ? 2 : 0);
}
installIfNeeded();
const results = [];
for (const major of positionals.length > 0 ? positionals : ['20', '22', '24']) {
  const node = program(major);
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim().slice(1);
  for (const step of chosen) results.push(run(node, version, step));
}
console.log();
for (const { version, step, passed, seconds } of results)
  console.log(`Node ${version.padEnd(8)}  ${step.padEnd(6)}  ${passed ? 'passed' : 'FAILED'}  ${seconds} s`);
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
