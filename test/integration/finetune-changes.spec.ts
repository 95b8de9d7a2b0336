import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { FinetuneJson, ProblemJson } from '../support/factories';
import { makeFinetune, makePrompts } from '../support/factories';
import { until } from '../support/until';

const lora = join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors');

describe('A Fine-Tune', () => {
  let api: TestApi;
  let key: TestKey;
  let models: string;
  let id: string;

  beforeAll(async () => {
    models = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    await cp(join(process.cwd(), 'models'), models, { recursive: true });
    api = await startTestApi({ MODELS_DIR: models });
  });
  beforeEach(async () => {
    key = await api.createKey();
    id = (await makeFinetune(api, key, { model: 'shapes', title: 'Mine', metadata: { a: 1 } })).id;
  });
  afterAll(async () => {
    await api.close();
    await rm(models, { recursive: true, force: true });
  });

  const upload = async (query = '') => {
    const headers = { 'content-type': 'application/octet-stream' };
    const raw = await readFile(lora);
    return api.request<FinetuneJson>('PUT', `/v1/finetunes/${id}/weights${query}`, { key, raw, headers });
  };
  const find = async () => (await api.request<FinetuneJson>('GET', `/v1/finetunes/${id}`, { key })).body;
  const patch = (body: object, owner = key) =>
    api.request<FinetuneJson & ProblemJson>('PATCH', `/v1/finetunes/${id}`, { key: owner, body });

  describe('PATCH', () => {
    it('changes what is sent and leaves the rest', async () => {
      const before = await find();
      const { status, body } = await patch({ title: 'Yours' });
      expect([status, body]).toEqual([200, { ...before, title: 'Yours' }]);
      expect((await patch({ metadata: { b: [1] } })).body).toEqual({ ...before, title: 'Yours', metadata: { b: [1] } });
      expect((await patch({ title: null, metadata: null, scale: null })).body).toEqual(await find());
      expect((await patch({})).body).toMatchObject({ title: 'Yours', metadata: { b: [1] } });
      expect((await patch({ title: '' })).body.title).toBeNull();
      expect(await find()).toEqual({ ...before, title: null, metadata: { b: [1] } });
    });

    it('changes the scale of weights, and refuses one where there are none', async () => {
      const refused = await patch({ scale: 0.5, title: 'x' });
      expect([refused.status, refused.body.code, refused.body.errors?.[0].pointer]).toEqual([
        422,
        'WeightsMissing',
        '/scale',
      ]);
      expect((await find()).title).toBe('Mine');
      await upload('?scale=0.25');
      expect((await find()).weights?.scale).toBe(0.25);
      expect((await patch({ scale: 1.5 })).body.weights?.scale).toBe(1.5);
    });

    it('is for its owner, with a key that may write', async () => {
      expect((await patch({ title: 'x' }, await api.createKey())).status).toBe(404);
      const { body } = await patch({ name: 'other' });
      expect([body.code, body.errors?.[0].pointer]).toEqual(['ValidationFailed', '/name']);
      const reader = await api.createKey({ scopes: ['read'] });
      expect((await patch({ title: 'x' }, reader)).status).toBe(403);
      expect((await find()).title).toBe('Mine');
    });
  });

  it('becomes stale when its base model is removed, and ready when that is back', async () => {
    await upload();
    const folder = join(models, 'shapes');
    await rename(folder, `${folder}-away`);
    try {
      const stale = await until(async () => {
        const found = await find();
        return found.status === 'stale' && found;
      }, 'the removal is noticed');
      expect(stale.note).toMatch(/^The model shapes is not installed any more/);
      const refused = await api.request<ProblemJson>('POST', `/v1/finetunes/${id}/prompts`, {
        key,
        body: [{ prompt: 'a robot' }],
      });
      expect([refused.status, refused.body.code]).toEqual([422, 'ModelNotInstalled']);
      expect(refused.body.detail).toMatch(/^The model "shapes" is not installed/);
    } finally {
      await rename(`${folder}-away`, folder);
    }
    const ready = await until(async () => {
      const found = await find();
      return found.status === 'ready' && found;
    }, 'the model is found again');
    expect(ready.note).toBeNull();
    await makePrompts(api, key, id);
  });

  it('becomes stale when its base model is replaced, and ready when the weights are sent again', async () => {
    await upload();
    const { weights } = await find();
    const config = join(models, 'shapes', 'scheduler', 'scheduler_config.json');
    const before = await readFile(config, 'utf8');
    try {
      await writeFile(config, `${before}\n`);
      const stale = await until(async () => {
        const found = await find();
        return found.status === 'stale' && found;
      }, 'the change is noticed');
      expect(stale.weights).toEqual(weights);
      expect(stale.note).toMatch(/The model shapes was replaced/);
      const { body: list } = await api.request<FinetuneJson[]>('GET', '/v1/finetunes', { key });
      expect(list.map(({ status }) => status)).toEqual(['stale']);
      const refused = await api.request<ProblemJson>('POST', `/v1/finetunes/${id}/prompts`, {
        key,
        body: [{ prompt: 'a robot' }],
      });
      expect([refused.status, refused.body.code, refused.body.detail]).toEqual([422, 'FineTuneStale', stale.note]);
      const { body } = await upload();
      expect(body).toMatchObject({ status: 'ready', note: null });
      expect(body.weights?.base).not.toBe(weights?.base);
      await makePrompts(api, key, id);
    } finally {
      await writeFile(config, before);
    }
  });

  it('whose weights were checked before their base was recorded is not stale', async () => {
    await upload();
    await api.dataSource.query('UPDATE finetunes SET weights_base = NULL WHERE id = $1', [id]);
    expect(await find()).toMatchObject({ status: 'ready', note: null, weights: { base: null } });
    await makePrompts(api, key, id);
  });
});
