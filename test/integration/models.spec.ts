import { mkdtempSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Drawing, InferenceWorker, limits } from '@app/domain';
import { LiveWorkers } from '@app/tasks';
import { modelKey, ModelStore } from '@app/model-store';
import { startTestApi, type TestApi, type TestKey } from '../support/api';
import { createTestDatabase } from '../support/database';
import { unpackFamily } from '../support/families';
import { ServiceProcess } from '../support/service-process';
import { until } from '../support/until';

interface ModelJson {
  name: string;
  defaults: { steps: number };
}

describe('models', () => {
  const folders: string[] = [];
  const apis: TestApi[] = [];

  afterEach(async () => {
    for (const api of apis.splice(0)) await api.close();
    // An api that is closed while it hashes a model writes down what it found.
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, maxRetries: 5 });
  });

  /** An api whose models folder contains copies of these. */
  async function start(models: Record<string, string>, env: Record<string, string> = {}) {
    const MODELS_DIR = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    folders.push(MODELS_DIR);
    for (const [name, source] of Object.entries(models)) await cp(source, join(MODELS_DIR, name), { recursive: true });
    const api = await startTestApi({ MODELS_DIR, ...env });
    apis.push(api);
    return { api, key: await api.createKey(), modelsDir: MODELS_DIR };
  }
  const list = async (api: TestApi, key: TestKey) =>
    (await api.request<Record<string, unknown>[]>('GET', '/v1/models', { key })).body;
  const shapes = join('models', 'shapes');
  const families = mkdtempSync(join(tmpdir(), 'darkroom-families-'));
  beforeAll(async () => {
    for (const name of ['sd21', 'sdxl', 'inpainting', 'instruct-pix2pix'])
      await unpackFamily(name, join(families, name));
  });
  afterAll(() => rm(families, { recursive: true }));
  const family = (name: string) => join(families, name, 'model');
  const asking = (model: string) => ({ prompt: 'x', model });

  it('lists installed models, with facts from their files, and stand-ins', async () => {
    const { api, key } = await start({ shapes, 'sd2.1': family('sd21') });
    const models = await list(api, key);
    expect(models).toEqual([
      {
        name: 'sd2.1',
        family: 'sd2',
        family_title: 'Stable Diffusion 2.x',
        kind: 'text-to-image',
        scheduler: 'DDIMScheduler',
        native_size: 768,
        size_multiple: 8,
        max_pixels: 4 * 768 ** 2,
        device: null,
        hash: expect.stringMatching(/^[0-9a-f]{12}$/) as string,
        precision: 'float32',
        bytes: expect.any(Number) as number,
        defaults: { cfg: 7.5, steps: 30, scheduler: null },
        schedulers: expect.arrayContaining(['ddim', 'euler', 'unipc']) as string[],
        cannot: { references: 'It looks at no pictures beside the text.' },
        stands_in_for: [],
        credentials: 'off',
        problem: null,
      },
      expect.objectContaining({
        name: 'shapes',
        family: 'sd1',
        scheduler: 'PNDMScheduler',
        native_size: 512,
        stands_in_for: ['sd1.5'],
      }),
    ]);
  });

  it('says at its start which weights draw, and what shapes stands in for', async () => {
    const database = await createTestDatabase();
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-data-'));
    folders.push(folder);
    const api = new ServiceProcess('api', {
      ...{ DATABASE_URL: database.url, DATA_DIR: folder },
      ...{ MODEL_FALLBACK: 'on', PORT: '0' },
    });
    try {
      const line = await until(async () => api.lines.find(({ msg }) => msg === 'models'), 'the models are logged');
      expect(line).toMatchObject({
        installed: [expect.stringMatching(/^shapes@[0-9a-f]{12}$/)],
        shapesStandsInFor: ['sd1.5', 'sd2.1'],
      });
    } finally {
      await api.end('SIGKILL');
      await database.drop();
    }
  });

  it('lists nothing if there is no folder', async () => {
    const { api, key } = await start({}, { MODELS_DIR: join(tmpdir(), 'darkroom-no-such-folder') });
    expect(await list(api, key)).toEqual([]);
  });

  it('shows the devices of running workers that have the model, but not of silent ones', async () => {
    const { api, key } = await start({ shapes });
    const device = async () => (await list(api, key))[0].device;
    expect(await device()).toBeNull();
    const workers = new LiveWorkers(api.dataSource);
    const fail = (error: unknown) => {
      throw error;
    };
    const gpus = await workers.join(() => ({ devices: ['cuda:1', 'cuda:0', 'cuda:10'], models: ['shapes'] }), fail);
    const cpu = await workers.join(() => ({ devices: ['webgpu', 'cpu'], models: ['sd2.1', 'shapes'] }), fail);
    const without = await workers.join(() => ({ devices: ['cuda:7'], models: ['sd2.1'] }), fail);
    expect(await device()).toBe('cpu,webgpu,cuda:0,cuda:1,cuda:10');
    await gpus.leave();
    expect(await device()).toBe('cpu,webgpu');
    await cpu.leave();
    expect(await device()).toBeNull();
    await without.leave();
    expect(await api.dataSource.manager.count(InferenceWorker)).toBe(0);
    // Of a process that no longer sends heartbeats.
    await api.dataSource.query(
      `INSERT INTO inference_workers (id, devices, models, started_at, heartbeat_at)
       VALUES ('gone', '{cpu}', '{shapes}', now() - interval '1 minute', now() - interval '16 s')`,
    );
    expect(await device()).toBeNull();
  });

  it('lists a broken model with its problem, and rejects requests for it', async () => {
    const { api, key, modelsDir } = await start({ shapes });
    await mkdir(join(modelsDir, 'sd1.5', 'unet'), { recursive: true });
    await writeFile(join(modelsDir, 'sd1.5', 'unet', 'diffusion_pytorch_model.safetensors'), 'x');
    const [broken, whole] = await list(api, key);
    expect(broken).toMatchObject({ name: 'sd1.5', hash: null, device: null, stands_in_for: [] });
    expect(broken.problem).toEqual(expect.any(String));
    expect(broken.problem).not.toContain(modelsDir);
    expect(whole).toMatchObject({ name: 'shapes', stands_in_for: ['sd2.1'], problem: null });
    const reply = await api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x' } });
    expect([reply.status, reply.body.code]).toEqual([422, 'ModelBroken']);
    const sentences = String(broken.problem).replaceAll('\n', ' ').replace(/\.$/, '');
    expect(reply.body.detail).toBe(
      `The model "sd1.5" is installed, but cannot be drawn with: ${sentences}; GET /v1/models says which can be drawn with.`,
    );
  });

  it('says of a name with capital letters how names are written', async () => {
    const { api, key } = await start({ shapes });
    const { status, body } = await api.request('POST', '/v1/sd/text-to-image', {
      key,
      body: { prompt: 'x', model: 'SD1.5' },
    });
    expect([status, body.detail]).toEqual([400, '"/model" must be the name of a model in lower case, such as sd1.5.']);
  });

  it('lists a model that a worker has refused as broken, until its files change or another worker can draw it', async () => {
    const { api, key, modelsDir } = await start({ shapes }, { MODEL_FALLBACK: 'off' });
    const refused = (await new ModelStore(modelsDir).find('shapes'))!;
    const problem = 'unet/model.onnx was refused by ONNX Runtime: it is odd.';
    const broken = [{ key: modelKey(refused), problem }];
    const fail = (error: unknown) => {
      throw error;
    };
    const workers = new LiveWorkers(api.dataSource);
    const refusing = await workers.join(() => ({ devices: ['cpu'], models: [], broken }), fail);
    const outcome = async () => {
      const body = { prompt: 'x', model: 'shapes' };
      const { status, body: reply } = await api.request('POST', '/v1/sd/text-to-image', { key, body });
      return [(await list(api, key))[0].problem, status, reply.code];
    };
    expect(await outcome()).toEqual([problem, 422, 'ModelBroken']);
    const able = await workers.join(() => ({ devices: ['cuda:0'], models: ['shapes'] }), fail);
    expect(await outcome()).toEqual([null, 201, undefined]);
    await able.leave();
    await until(async () => (await outcome())[1] === 422, 'the model is no longer taken to be sound');
    // The API takes a sound model to be sound for a moment, so the list alone is asked.
    const listed = async () => (await list(api, key))[0].problem;
    const defaults = join(modelsDir, 'shapes', 'darkroom.json');
    await writeFile(defaults, '{"clip_skip": 2}');
    expect(await listed()).toBeNull();
    await rm(defaults);
    expect(await listed()).toBe(problem);
    const config = join(modelsDir, 'shapes', 'unet', 'config.json');
    await writeFile(config, `${await readFile(config, 'utf8')}\n`);
    expect(await outcome()).toEqual([null, 201, undefined]);
    await refusing.leave();
  });

  it('draws with the defaults of the model where a request names none, and lists them', async () => {
    const { api, key, modelsDir } = await start({ shapes });
    await writeFile(join(modelsDir, 'shapes', 'darkroom.json'), '{"steps": 4, "cfg": 1, "scheduler": "lcm"}');
    expect((await list(api, key))[0]).toMatchObject({
      defaults: { steps: 4, cfg: 1, scheduler: 'lcm' },
      problem: null,
    });
    const draw = async (body: object) =>
      (await api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', ...body } })).body;
    // The model stands in for sd1.5, and brings its own.
    expect(await draw({})).toMatchObject({ model: 'sd1.5', steps: 4, cfg: 1, scheduler: 'lcm' });
    expect(await draw({ steps: 8, cfg: 2, scheduler: 'euler' })).toMatchObject({
      steps: 8,
      cfg: 2,
      scheduler: 'euler',
    });

    const { body: finetune } = await api.request('POST', '/v1/finetunes', { key, body: { name: 'robot' } });
    const prompts = await api.request<object[]>('POST', `/v1/finetunes/${String(finetune.id)}/prompts`, {
      key,
      body: [{ prompt: 'a robot' }, { prompt: 'a robot', steps: 2, cfg: 3 }],
    });
    expect(prompts.body).toMatchObject([
      { steps: 4, cfg: '1' },
      { steps: 2, cfg: '3' },
    ]);
  });

  it('lists a model with a wrong darkroom.json as broken', async () => {
    const { api, key, modelsDir } = await start({ shapes });
    await writeFile(join(modelsDir, 'shapes', 'darkroom.json'), '{"steps": 400}');
    expect((await list(api, key))[0]).toMatchObject({
      hash: null,
      problem:
        'darkroom.json has steps that are no integer from 1 to 50. Correct this file, or remove it: it is optional.',
    });
  });

  it.each([
    ['sd1.5', 'sdxl', [512, 512], [512, 768]],
    ['sd2.1', 'sd21', [512, 512], [512, 768]],
    ['v2', 'sd21', [768, 768], [640, 960]],
    ['xl', 'sdxl', [1024, 1024], [832, 1216]],
  ])('draws what is installed as %s from %s at the size that is its own, or specified', async (name, ...expected) => {
    const [source, square, portrait] = expected;
    const { api, key } = await start({ [name]: family(source) });
    const draw = async (aspect_ratio: string) => {
      const { body } = await api.request('POST', '/v1/sd/text-to-image', {
        key,
        body: { ...asking(name), aspect_ratio },
      });
      const { width, height } = await api.dataSource.manager.findOneByOrFail(Drawing, { id: String(body.id) });
      return [width, height];
    };
    expect([await draw('square'), await draw('portrait'), await draw('landscape')]).toEqual([
      square,
      portrait,
      [...portrait].reverse(),
    ]);
  });

  it('draws in no more steps by the routes of OpenAI than by the others', async () => {
    const { api } = await start({ usual: family('sd21') });
    const key = await api.createKey({ sandbox: true });
    const { body } = await api.request<ModelJson[]>('GET', '/v1/models', { key });
    expect(body.find(({ name }) => name === 'usual')?.defaults.steps).toBe(30);
    const asked = { ...asking('usual'), quality: 'max', size: '256x256' };
    const { headers } = await api.request('POST', '/v1/images/generations', { key, body: asked });
    const { steps } = await api.dataSource.manager.findOneByOrFail(Drawing, {
      id: headers.get('x-generation-id') ?? '',
    });
    expect(steps).toBe(limits.steps.max);
    const again = { ...asking('usual'), steps };
    expect((await api.request('POST', '/v1/sd/text-to-image', { key, body: again })).status).toBe(201);
  });

  it.each(['inpainting', 'instruct-pix2pix'])(
    'lists a model for %s, and refuses requests without a picture for it',
    async (kind) => {
      const { api, key } = await start({ other: family(kind) });
      const needs = kind === 'inpainting' ? '"image" and "mask"' : '"image"';
      const problem = `It draws from a picture (${kind}), so a request needs ${needs}.`;
      expect(await list(api, key)).toMatchObject([{ name: 'other', family: 'sd1', kind, problem: null }]);
      const draw = (path: string, body: unknown) => api.request('POST', path, { key, body });
      const refused = await draw('/v1/sd/text-to-image', asking('other'));
      expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
        422,
        'ModelNeedsPicture',
        `The model "other" cannot draw this. ${problem}`,
      ]);
      const { body: finetune } = await draw('/v1/finetunes', { name: 'robot', model: 'other' });
      const prompts = await draw(`/v1/finetunes/${String(finetune.id)}/prompts`, [{ prompt: 'a robot' }]);
      expect([prompts.status, prompts.body.code]).toEqual([422, 'ModelNeedsPicture']);
      const pictures = Array.from({ length: 5 }, (_, i) => `https://pictures.example/${i}.png`);
      const trained = await draw('/v1/finetunes', { name: 'robot', model: 'other', images_url: pictures });
      expect([trained.status, trained.body.code]).toEqual([422, 'TrainingUnsupported']);
      const sent = { image: 'https://pictures.example/a.png' };
      const withPicture = await draw('/v1/sd/text-to-image', { ...asking('other'), ...sent });
      expect([withPicture.status, withPicture.body.code]).toEqual(
        kind === 'inpainting' ? [422, 'ModelNeedsPicture'] : [201, undefined],
      );
      const withMask = await draw('/v1/sd/text-to-image', { ...asking('other'), ...sent, mask: sent.image });
      expect([withMask.status, withMask.body.code]).toEqual(
        kind === 'inpainting' ? [201, undefined] : [422, 'MaskUnsupported'],
      );
    },
  );

  it('rejects a stand-in that the operator does not allow', async () => {
    const { api, key } = await start({ shapes }, { MODEL_FALLBACK: 'off' });
    expect((await list(api, key))[0].stands_in_for).toEqual([]);
    const draw = (model?: string) =>
      api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', ...(model && { model }) } });
    expect((await draw('shapes')).status).toBe(201);
    const reply = await draw();
    expect([reply.status, reply.body.code, reply.body.detail, reply.body.errors]).toEqual([
      422,
      'ModelNotInstalled',
      'The model "sd1.5" is not installed; GET /v1/models lists shapes.',
      [{ pointer: '/model', message: 'names "sd1.5", which is not installed' }],
    ]);
  });
});
