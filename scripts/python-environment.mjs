import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Makes a Python environment with packages for a test, in `.cache`, once. From the command line, `node
 * python-environment.mjs <package==version> …` prints its folder of programs, or exits with 77 if Python
 * or PyPI is out of reach.
 */
export const outOfReach = 77;

const isWindows = process.platform === 'win32';

/**
 * @param requirements as pip reads them; the first names the folder.
 * @returns the folder of programs.
 * @throws if Python or PyPI is out of reach.
 */
export function pythonEnvironment(...requirements) {
  const home = join(dirname(import.meta.dirname), '.cache', requirements[0].replace('==', '-'));
  const bin = join(home, isWindows ? 'Scripts' : 'bin');
  const stamp = join(home, 'installed');
  if (existsSync(stamp)) return bin;
  mkdirSync(dirname(home), { recursive: true });
  rmSync(home, { recursive: true, force: true });
  attempt(isWindows ? 'python' : 'python3', ['-m', 'venv', home], 'Python with venv');
  // Python compiles what it imports, which is a small part of it.
  const pip = ['-m', 'pip', 'install', '--no-compile', '--quiet', '--disable-pip-version-check'];
  attempt(join(bin, 'python'), [...pip, '--retries', '1', '--timeout', '20', ...requirements], 'PyPI');
  writeFileSync(stamp, requirements.join('\n'));
  return bin;
}

function attempt(command, args, what) {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`${what} is out of reach (${error?.message ?? stderr.trim().split('\n').at(-1)}).`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    console.log(pythonEnvironment(...process.argv.slice(2)));
  } catch (error) {
    console.error(`It is skipped: ${error.message}`);
    process.exit(outOfReach);
  }
}
