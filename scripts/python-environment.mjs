import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './build.mjs';

const isWindows = process.platform === 'win32';

/**
 * Makes a Python environment with packages for a test, in `.cache`, once. Exits with 77 if Python or PyPI is out of
 * reach. From the command line, `node python-environment.mjs <package==version> …` prints its folder of programs.
 * @param requirements as pip reads them; the first names the folder
 * @returns the folder of programs
 */
export function pythonEnvironment(requirements) {
  const home = join(root, '.cache', requirements[0].replace('==', '-'));
  const bin = join(home, isWindows ? 'Scripts' : 'bin');
  const stamp = join(home, 'installed');
  if (existsSync(stamp)) return bin;
  rmSync(home, { recursive: true, force: true });
  attempt(isWindows ? 'python' : 'python3', ['-m', 'venv', home]);
  const options = ['--quiet', '--no-compile', '--disable-pip-version-check', '--retries', '1', '--timeout', '20'];
  attempt(join(bin, 'python'), ['-m', 'pip', 'install', ...options, ...requirements]);
  writeFileSync(stamp, requirements.join('\n'));
  return bin;
}

function attempt(command, args) {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return;
  console.error(`It is skipped, because Python or PyPI is out of reach: ${error?.message ?? stderr.trim()}`);
  process.exit(77);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  console.log(pythonEnvironment(process.argv.slice(2)));
