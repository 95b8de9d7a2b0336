import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './build.mjs';
import { pythonEnvironment } from './python-environment.mjs';

/**
 * `install` makes a virtual environment with schemathesis in `.cache`; exit status 77 means that Python or PyPI is not
 * reachable. `run <url of the service>` tests the service against its own document, with the key in DARKROOM_API_KEY
 * and, in DARKROOM_WORLD, ids of that key's records (see test/support/world.ts).
 */
const [command, url, ...args] = process.argv.slice(2);
const bin = pythonEnvironment(['schemathesis==4.32.5']);
if (command === 'run') {
  const settings = join(root, 'test', 'schemathesis');
  const config = ['--config-file', join(settings, 'schemathesis.toml')];
  const hooks = { SCHEMATHESIS_HOOKS: join(settings, 'hooks.py'), PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1' };
  const { status } = spawnSync(
    join(bin, 'schemathesis'),
    [...config, 'run', `${url}/openapi.json`, '--url', url, ...args],
    // It leaves a folder where it runs.
    { cwd: join(bin, '..'), stdio: 'inherit', env: { ...process.env, ...hooks } },
  );
  process.exitCode = status ?? 1;
}
