import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { schedulerNames } from '@app/domain';
import sharp from 'sharp';
import { startTestApi, type TestKey } from '../support/api';
import { unpackTransformerModel } from '../support/families';
import { ofSuite } from '../support/of-suite';

const main = resolve(__dirname, '..', '..', 'dist', 'apps', 'cli', 'src', 'demo.js');

describe('npm run demo', () => {
  let folder: string;
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://darkroom.example' }));
  let key: TestKey;
  const demo = (
    env: Record<string, string>,
    ...args: string[]
  ): Promise<{ code: number; stdout: string; stderr: string }> =>
    new Promise((done) => {
      const options = { env: { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), ...env } };
      execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-demo-'));
    key = await api.createKey({ sandbox: true });
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  it.each(['DARKROOM_URL', '--url'])(
    'draws with the service that %s names, and the key in DARKROOM_API_KEY',
    async (by) => {
      const file = join(folder, `${by}.png`);
      const byVariable = by === 'DARKROOM_URL';
      const { code, stdout } = await demo(
        // The option counts more than the variable.
        { DARKROOM_API_KEY: key.token, DARKROOM_URL: byVariable ? api.baseUrl : 'http://127.0.0.1:1' },
        'a star',
        ...['--out', file, '--seed', '7'],
        ...(byVariable ? [] : ['--url', api.baseUrl]),
      );
      expect(stdout).toMatch(new RegExp(`^${file}\nDrawn in [\\d.]+ s by sandbox with seed 7\\.\n$`));
      expect(code).toBe(0);
      await expect(sharp(file).metadata()).resolves.toMatchObject({ format: 'png' });
    },
  );

  it('trains an object, and draws it before and after', async () => {
    const file = join(folder, 'trained.png');
    const { code, stdout, stderr } = await demo(
      { DARKROOM_API_KEY: key.token, DARKROOM_URL: api.baseUrl },
      ...['--train', '--out', file],
    );
    const before = join(folder, 'trained-before.png');
    expect(stderr).toMatch(/^training step \d+ of \d+, loss [\d.]+/m);
    expect(stdout).toMatch(
      new RegExp(
        `^${before}\n${file}\nTrained in \\d+ steps and drawn in [\\d.]+ s: a pink zwx robot on a gray background\nThe Fine-Tune is [\\w-]{24}\\.\n$`,
      ),
    );
    expect(code).toBe(0);
    for (const path of [before, file]) expect(await sharp(path).metadata()).toMatchObject({ format: 'png' });
    const [, id] = /Fine-Tune is ([\w-]+)/.exec(stdout)!;
    const { body } = await api.request('GET', `/v1/finetunes/${id}`, { key });
    expect(body).toMatchObject({ status: 'ready', token: 'zwx', training: { images: 10 } });
    const { body: drawn } = await api.request<object[]>('GET', '/v1/sd/text-to-image?limit=2', { key });
    const same = { prompt: 'a pink zwx robot on a gray background', seed: 7 };
    expect(drawn).toMatchObject([
      { ...same, finetunes: [{ id }] },
      { ...same, finetunes: [] },
    ]);
  });

  it('says in a sentence why nothing is trained', async () => {
    const service = { DARKROOM_URL: api.baseUrl, DARKROOM_API_KEY: key.token };
    const { code, stderr } = await demo(service, '--train', '--model', 'nope');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]+"nope", which is not installed[^\n]+\n$/)]);
  });

  it('asks for the key of a service that is named', () =>
    expect(demo({ DARKROOM_URL: api.baseUrl }, 'a star')).resolves.toEqual({
      code: 1,
      stdout: '',
      stderr: `DARKROOM_API_KEY is not set: write there a key of ${api.baseUrl}.\n`,
    }));

  it.each([
    ['--model', 'nope', 'The request names "nope", which is not installed. Name one of these with --model: shapes, '],
    ['--steps', '99', 'The service refuses it: steps must be from 1 to 50, got 99.'],
  ])('says in a sentence why the service does not take %s %s', async (option, value, sentence) => {
    const service = { DARKROOM_URL: api.baseUrl, DARKROOM_API_KEY: key.token };
    const { code, stderr } = await demo(service, 'a star', option, value);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]+\.\n$/)]);
    expect(stderr).toContain(sentence);
  });

  it('draws with the first model that can where nobody names one and sd1.5 is not installed', async () => {
    const models = join(folder, 'models');
    await unpackTransformerModel('flux2-klein', join(models, 'klein'));
    const other = await startTestApi({ MODELS_DIR: models, PUBLIC_URL: 'https://darkroom.example' });
    const { token } = await other.createKey({ sandbox: true });
    const service = { DARKROOM_URL: other.baseUrl, DARKROOM_API_KEY: token };
    const { stdout } = await demo(service, 'a star', '--json', '--out', join(folder, 'other.png'));
    await other.close();
    expect(JSON.parse(stdout)).toMatchObject({ generation: { model: 'klein', steps: 4, cfg: 1 } });
  });

  it('takes empty variables as none, and reads the settings of the service on this machine', async () => {
    const { code, stderr } = await demo({ DARKROOM_URL: '', DARKROOM_API_KEY: '', PORT: 'none' }, 'a star');
    expect(stderr).toContain('PORT');
    expect(code).toBe(78);
  });

  it('refuses an address that is none', async () => {
    const { code, stderr } = await demo({ DARKROOM_URL: 'localhost:3000', DARKROOM_API_KEY: key.token }, 'a star');
    expect(stderr).toContain('DARKROOM_URL');
    expect(stderr).toContain('It must be an address such as http://localhost:3000.');
    expect(code).toBe(2);
  });

  it('says in --help how it finds the service, and names all schedulers', async () => {
    const { code, stdout } = await demo({}, '--help');
    for (const name of ['--url', 'DARKROOM_URL', 'DARKROOM_API_KEY', 'DATA_DIR', ...schedulerNames])
      expect(stdout).toMatch(new RegExp(`\\b${name.replace(/^--/, '')}\\b`));
    expect(code).toBe(0);
  });
});
