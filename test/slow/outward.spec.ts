import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { request, type TestKey } from '../support/api';
import { connectionsOutward, underStrace, whyNoStrace } from '../support/connections';
import { trainableModels } from '../support/quick-model';
import { ServiceProcess, untilNobodyIsLeft } from '../support/service-process';
import { Trainer } from '../support/trainings';
import { until } from '../support/until';

const problem = whyNoStrace();
if (problem) console.warn(`The test of connections to other machines is skipped: ${problem}.`);

// A training has the lowest priority: beside other tests it takes many times as long as alone.
jest.setTimeout(600_000);

describe('A service that starts, draws and trains, and its commands', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-outward-'));
  const [home, connections] = [join(folder, 'home'), join(folder, 'connections')];
  const under = problem ? [] : underStrace(connections);
  let service: ServiceProcess;

  beforeAll(async () => {
    chmodSync(folder, 0o711);
    mkdirSync(home);
    const own = { HOME: home, DATA_DIR: join(folder, 'data'), MODELS_DIR: trainableModels() };
    service = new ServiceProcess('launcher', { ...own, PORT: '0' }, [], under);
    const url = await service.listening();
    const key = { token: readFileSync(join(folder, 'data', 'api-key'), 'utf8').trim() } as TestKey;
    const caller: Pick<ConstructorParameters<typeof Trainer>[0], 'request' | 'baseUrl'> = {
      baseUrl: url,
      request: (method, path, options) => request(url, method, path, options),
    };
    const drawn = await caller.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
      key,
      body: { prompt: 'a red circle', steps: 2 },
    });
    await until(async () => {
      const { body } = await caller.request<{ status: string }>('GET', `/v1/sd/text-to-image/${drawn.body.id}`, {
        key,
      });
      return body.status === 'succeeded';
    }, 'it is drawn');
    const trainer = new Trainer(caller, key);
    const { id } = await trainer.train({ images_url: await trainer.upload() });
    await trainer.has(id, 'ready');
    for (const [name, ...args] of [
      ['keys', 'list'],
      ['models', 'list'],
      ['models', 'verify', 'shapes'],
    ]) {
      const command = [...under, process.execPath, resolve('dist', 'apps', 'cli', 'src', `${name}.js`), ...args];
      const env = { PATH: process.env.PATH, ...own };
      await promisify(execFile)(command[0], [...command.slice(1)], { env });
    }
    expect(await service.end('SIGTERM')).toBe(0);
  });
  afterAll(async () => {
    await service.end('SIGKILL');
    await untilNobodyIsLeft(folder);
    rmSync(folder, { recursive: true, force: true });
  });

  it('leave nothing in the home of their user', () => {
    expect(readdirSync(home, { recursive: true })).toEqual([]);
  });

  (problem ? it.skip : it)('connect to no other machine', () => {
    expect(connectionsOutward(connections)).toEqual([]);
  });
});
