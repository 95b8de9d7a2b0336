import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestApi, type TestApi, type TestKey } from '../support/api';

describe('schedulers of models', () => {
  let modelsDir: string;
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    modelsDir = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    await install('unknown', { _class_name: 'FooScheduler' }, {});
    await install('mended', { _class_name: 'FooScheduler' }, { scheduler: 'ddim' });
    await install('karras', { use_karras_sigmas: 'yes' }, {});
    await install('flow', { _class_name: 'FlowMatchEulerDiscreteScheduler', shift: 3 }, {});
    await install('broken', { beta_start: 'low' }, {});
    api = await startTestApi({ MODELS_DIR: modelsDir });
    key = await api.createKey();
  });
  afterAll(async () => {
    await api.close();
    await rm(modelsDir, { recursive: true });
  });

  /** The bundled model, with other values in its `scheduler_config.json`, and these defaults. */
  async function install(name: string, values: object, defaults: object): Promise<void> {
    const folder = join(modelsDir, name);
    await cp(join('models', 'shapes'), folder, { recursive: true });
    const file = join(folder, 'scheduler', 'scheduler_config.json');
    const config = JSON.parse(await readFile(file, 'utf8')) as object;
    await writeFile(file, JSON.stringify({ ...config, ...values }));
    await writeFile(join(folder, 'darkroom.json'), JSON.stringify(defaults));
  }
  const draw = (model: string, scheduler?: string) =>
    api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', model, ...(scheduler && { scheduler }) } });

  it('are refused only in requests that need one that is not supported', async () => {
    expect((await draw('unknown', 'euler')).status).toBe(201);
    const { status, body } = await draw('unknown');
    expect([status, body.code, body.detail, body.errors]).toEqual([
      422,
      'SchedulerUnsupported',
      'The model "unknown" cannot draw with its own scheduler: The scheduler class "FooScheduler" is not supported. Name any scheduler, such as ddim.',
      [{ pointer: '/scheduler', message: 'is needed for this model' }],
    ]);
    // With a default of its own the model needs no other.
    expect((await draw('mended')).body).toMatchObject({ status: 'queued', scheduler: 'ddim' });
  });

  it('are named by Prompts and for Styles too, and refused where they are named', async () => {
    const finetune = await api.request('POST', '/v1/finetunes', { key, body: { name: 'robot', model: 'unknown' } });
    const send = (of: string, body: object[]) =>
      api.request('POST', `/v1/finetunes/${finetune.body.id as string}/${of}`, { key, body });
    const named = { prompt: 'a robot', scheduler: 'ddim' };
    const { status, body } = await send('prompts', [named, { prompt: 'a robot' }]);
    const errors = [{ pointer: '/1/scheduler', message: 'is needed for this model' }];
    expect([status, body.code, body.errors]).toEqual([422, 'SchedulerUnsupported', errors]);
    expect((await send('prompts', [named])).status).toBe(201);
    const { body: collections } = await api.request<[{ id: string }]>('GET', '/v1/prompts/collections?scope=public', {
      key,
    });
    const [{ id }] = collections as unknown as [{ id: string }];
    const ofStyle = await send('styles', [{ id, scheduler: 'ddim' }, { id }]);
    expect([ofStyle.status, ofStyle.body.errors]).toEqual([422, errors]);
    expect((await send('styles', [{ id, scheduler: 'ddim' }])).status).toBe(201);
  });

  it('are refused where they cannot take the values of the model', async () => {
    expect((await draw('karras', 'ddim')).status).toBe(201);
    const { status, body } = await draw('karras', 'euler');
    expect([status, body.code, body.errors]).toEqual([
      422,
      'SchedulerUnsupported',
      [{ pointer: '/scheduler', message: 'cannot be used with this model' }],
    ]);
    expect(body.detail).toMatch(
      /^The model "karras" cannot draw with the scheduler euler: use_karras_sigmas must be .*, but is "yes"\. Name ddim, ddpm, .*\.$/,
    );
  });

  it('are refused for a model of flow matching if they are for another kind of noise', async () => {
    expect((await draw('flow')).status).toBe(201);
    expect((await draw('flow', 'unipc')).status).toBe(201);
    const { status, body } = await draw('flow', 'ddim');
    expect([status, body.code, body.detail]).toEqual([
      422,
      'SchedulerUnsupported',
      'The model "flow" cannot draw with the scheduler ddim: It does not draw by flow matching. Name euler, heun, dpmpp_2m, unipc or dpmpp_2s.',
    ]);
  });

  it('are shown as the problem of a model whose own is not supported and that names no other', async () => {
    const { body } = await api.request<{ name: string; problem: string | null }[]>('GET', '/v1/models', { key });
    const problemOf = (model: string) => body.find(({ name }) => name === model)!.problem;
    expect(problemOf('unknown')).toBe(
      'Its own scheduler cannot draw: The scheduler class "FooScheduler" is not supported. Requests and Prompts that name none are refused; to draw them, set "scheduler" in its darkroom.json to any scheduler, such as ddim.',
    );
    expect(problemOf('mended')).toBeNull();
  });

  it('make a model broken where none can draw with its values', async () => {
    const { body } = await api.request<Record<string, unknown>[]>('GET', '/v1/models', { key });
    expect(body.find(({ name }) => name === 'broken')).toMatchObject({
      hash: null,
      problem:
        'scheduler/scheduler_config.json cannot be used: beta_start must be a number from 1e-7 to 0.999, but is "low". Correct this file, or take it from the source of the model again.',
    });
    expect((await draw('broken', 'ddim')).body.code).toBe('ModelBroken');
  });
});
