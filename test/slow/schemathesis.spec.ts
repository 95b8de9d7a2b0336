import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { OpenaiAnswer } from '../../apps/api/src/generations/openai-answer';
import { startTestApi } from '../support/api';
import { startReceiver } from '../support/receiver';
import { makeWorld } from '../support/world';
import { ofSuite } from '../support/of-suite';

const root = join(__dirname, '..', '..');
const script = join(root, 'scripts', 'schemathesis.mjs');

const document = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')) as { paths: Record<string, object> };

/** Exit status of the script if Python or PyPI is not reachable. */
const outOfReach = 77;
const seconds = Number(process.env.SCHEMATHESIS_SECONDS ?? 20);

const { status } = spawnSync(process.execPath, [script, 'install'], { stdio: 'inherit' });
const describeWherePossible = status === outOfReach ? describe.skip : describe;

describeWherePossible('schemathesis', () => {
  const receiver = ofSuite(startReceiver);
  const api = ofSuite(startTestApi);

  // Nothing draws here, and nobody waits for it.
  beforeAll(() => void (OpenaiAnswer.waitSeconds = 0.05));

  it(
    'finds no response that violates the document',
    async () => {
      const key = await api.createKey({ scopes: ['admin'] });
      const world = await makeWorld(api, key, receiver);
      const run = spawn(process.execPath, [script, 'run', api.baseUrl, '--max-time', String(seconds)], {
        env: { ...process.env, DARKROOM_API_KEY: key.token, DARKROOM_WORLD: JSON.stringify(world) },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const exit = new Promise<number | null>((resolve) => run.on('exit', resolve));
      const [output, errors, code] = await Promise.all([text(run.stdout), text(run.stderr), exit]);
      if (code !== 0) throw new Error(`schemathesis ended with ${code}.\n${output}\n${errors}`);
      const operations = Object.values(document.paths).flatMap((item) => Object.keys(item));
      expect(output).toMatch(new RegExp(`Tested: ${operations.length}\\b`));
      expect(Number(/(?<!\d)(\d+) generated/.exec(output)?.[1])).toBeGreaterThan(operations.length);
    },
    (seconds + 300) * 1000,
  );
});
