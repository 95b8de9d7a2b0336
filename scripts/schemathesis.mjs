import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { outOfReach, pythonEnvironment } from './python-environment.mjs';

/**
 * `install` makes a virtual environment with schemathesis in `.cache`; exit status 77 means that Python or PyPI is not
 * reachable. `run <url of the service>` tests the service against its own document, with the key in DARKROOM_API_KEY
 * and, in DARKROOM_WORLD, ids of that key's records (see test/support/world.ts).
 * Without an argument (`npm run schemathesis`) it runs the test of the suite for SCHEMATHESIS_SECONDS,
 * ten minutes by default.
 */
const requirement = 'schemathesis==4.32.5';

const root = dirname(import.meta.dirname);
const settings = join(root, 'test', 'schemathesis');

function install() {
  try {
    return pythonEnvironment([requirement]);
  } catch (error) {
    console.error(`schemathesis is skipped: ${error.message}`);
    process.exit(outOfReach);
  }
}

function run(url, args) {
  const bin = install();
  const { status } = spawnSync(
    join(bin, 'schemathesis'),
    ['--config-file', join(settings, 'schemathesis.toml'), 'run', `${url}/openapi.json`, '--url', url, ...args],
    {
      cwd: dirname(bin),
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
else if (command === 'run') process.exitCode = run(url, args);
else {
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
