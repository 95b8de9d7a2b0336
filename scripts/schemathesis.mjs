import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * `install` makes a virtual environment with schemathesis in `.cache`; exit status 77 means that Python or PyPI is not reachable.
 * `run <url of the service>` tests the service against its own document, with the key in DARKROOM_API_KEY and, in DARKROOM_WORLD,
 * ids of that key's records (see test/support/world.ts).
 * Without an argument (`npm run schemathesis`) it runs the test of the suite for SCHEMATHESIS_SECONDS, ten minutes by default.
 */
const version = '4.32.5';
const outOfReach = 77;

const root = dirname(import.meta.dirname);
const home = join(root, '.cache', `schemathesis-${version}`);
const bin = join(home, process.platform === 'win32' ? 'Scripts' : 'bin');
const stamp = join(home, 'installed');
const settings = join(root, 'test', 'schemathesis');

function install() {
  if (existsSync(stamp)) return;
  mkdirSync(dirname(home), { recursive: true });
  rmSync(home, { recursive: true, force: true });
  attempt(process.platform === 'win32' ? 'python' : 'python3', ['-m', 'venv', home], 'Python with venv');
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '20'];
  attempt(join(bin, 'python'), [...pip, `schemathesis==${version}`], 'PyPI');
  writeFileSync(stamp, version);
}

function attempt(command, args, what) {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return;
  const reason = error?.message ?? stderr.trim().split('\n').at(-1);
  console.error(`schemathesis is skipped: ${what} is out of reach (${reason}).`);
  process.exit(outOfReach);
}

function run(url, args) {
  const { status } = spawnSync(
    join(bin, 'schemathesis'),
    ['--config-file', join(settings, 'schemathesis.toml'), 'run', `${url}/openapi.json`, '--url', url, ...args],
    {
      cwd: home,
      stdio: 'inherit',
      env: {
        ...process.env,
        SCHEMATHESIS_HOOKS: join(settings, 'hooks.py'),
        PYTHONDONTWRITEBYTECODE: '1',
        NO_COLOR: '1',
      },
    },
  );
  return status ?? 1;
}

const [command, url, ...args] = process.argv.slice(2);
if (command === 'install') install();
else if (command === 'run') {
  install();
  process.exitCode = run(url, args);
} else {
  const seconds = process.env.SCHEMATHESIS_SECONDS ?? '600';
  const suite = join(root, 'scripts', 'test.mjs');
  const { status } = spawnSync(
    process.execPath,
    [suite, 'test/integration/schemathesis', '--selectProjects', 'integration'],
    {
      stdio: 'inherit',
      env: { ...process.env, SCHEMATHESIS_SECONDS: seconds },
    },
  );
  process.exitCode = status ?? 1;
}
