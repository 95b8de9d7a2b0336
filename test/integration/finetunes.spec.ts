import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Finetune } from '@app/domain';
import { startTestApi } from '../support/api';
import { type FinetuneJson, makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { until } from '../support/until';

/** It says its alphas, so nothing is assumed of it. */
const lora = join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-kohya.safetensors');

describe('Fine-Tunes', () => {
  const models = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
  const api = ofSuite(async () => {
    cpSync(join(process.cwd(), 'models'), models, { recursive: true });
    return startTestApi({ MODELS_DIR: models, MODEL_FALLBACK: 'off' });
  });
  const key = ofTest(() => api.createKey());
  afterAll(() => rmSync(models, { recursive: true, force: true }));

  const model = 'shapes';
  const register = (body: object) => api.request<FinetuneJson & ProblemJson>('POST', '/v1/finetunes', { key, body });
  const images = (count: number) => Array.from({ length: count }, (_, i) => `https://example.com/${i}.jpg`);

  describe('create', () => {
    it('registers with a name alone and returns every field', async () => {
      const { status, body } = await register({ name: 'robot', model });
      expect(status).toBe(201);
      const { id, created_at, ...rest } = body;
      expect(id).toMatch(/^[A-Za-z0-9_-]{24}$/);
      expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(rest).toEqual({
        title: null,
        name: 'robot',
        token: 'zwx',
        model,
        status: 'registered',
        weights: null,
        training: null,
        prompts: [],
        user: null,
        metadata: null,
        error_message: null,
        note: expect.stringMatching(/no weights.*the model alone draws/) as string,
      });
    });

    it('keeps what is sent', async () => {
      const sent = { name: 'tin robot', title: 'Mine', token: 'ohwx', model, metadata: { a: [1, { b: null }] } };
      const { status, body } = await register({ ...sent, images_url: images(4) });
      expect(status).toBe(201);
      expect(body).toMatchObject(sent);
      expect(Object.keys(body)).not.toContain('images_url');
      const { body: found } = await api.request('GET', `/v1/finetunes/${body.id}`, { key });
      expect(found).toEqual(body);
    });

    it('draws pictures when the body has a prompt', async () => {
      const { status, body } = await register({ prompt: 'a red circle', model });
      expect(status).toBe(201);
      expect(body).toMatchObject({ prompt: 'a red circle', status: 'queued', num_generations: 1 });
      expect((await api.request('GET', `/v1/sd/text-to-image/${body.id}`, { key })).status).toBe(200);
    });

    it.each([
      ['no field', {}, 400, 'PromptMissing', ['/prompt']],
      ['only fields of both', { model, metadata: {} }, 400, 'PromptMissing', ['/prompt']],
      ['a title without a name', { title: 'x' }, 400, 'FineTuneNameMissing', ['/name']],
      ['a token without a name', { token: 'x' }, 400, 'FineTuneNameMissing', ['/name']],
      ['pictures without a name', { images_url: images(5) }, 400, 'FineTuneNameMissing', ['/name']],
      ['no name and a token of two words', { token: 'a b' }, 400, 'FineTuneNameMissing', ['/name', '/token']],
      ['name and prompt', { name: 'robot', prompt: 'a robot' }, 400, 'ValidationFailed', ['/name']],
      ['a name that is null', { name: null }, 400, 'PromptMissing', ['/prompt']],
      ['a title and a name that is null', { name: null, title: 'x' }, 400, 'FineTuneNameMissing', ['/name']],
      ['a field of the other', { name: 'robot', cfg: 3 }, 400, 'ValidationFailed', ['/cfg']],
      ['no pictures', { name: 'robot', model, images_url: [] }, 400, 'FineTuneImagesMissing', ['/images_url']],
      ['three', { name: 'robot', model, images_url: images(3) }, 400, 'FineTuneImagesNotEnough', ['/images_url']],
      [
        'a file',
        { name: 'robot', images_url: ['file:///x', ...images(4)] },
        400,
        'ValidationFailed',
        ['/images_url/0'],
      ],
      ['a token of two words', { name: 'robot', token: 'a b' }, 400, 'ValidationFailed', ['/token']],
      ['a model that is not there', { name: 'robot', model: 'sd2.1' }, 422, 'ModelNotInstalled', ['/model']],
    ])('rejects %s', async (_, body, status, code, pointers) => {
      const reply = await register(body);
      const found = reply.body.errors?.map(({ pointer }) => pointer).sort();
      expect([reply.status, reply.body.code, found]).toEqual([status, code, pointers]);
      expect(await api.dataSource.manager.countBy(Finetune, { ownerId: key.id })).toBe(0);
    });
  });

  describe('that is registered', () => {
    let id: string;

    beforeEach(async () => {
      id = (await makeFinetune(api, key, { model: 'shapes', title: 'Mine', metadata: { a: 1 } })).id;
    });

    const upload = async (query = '') => {
      const headers = { 'content-type': 'application/octet-stream' };
      const raw = await readFile(lora);
      return api.request<FinetuneJson>('PUT', `/v1/finetunes/${id}/weights${query}`, { key, raw, headers });
    };
    const find = async () => (await api.request<FinetuneJson>('GET', `/v1/finetunes/${id}`, { key })).body;
    const patch = (body: object) =>
      api.request<FinetuneJson & ProblemJson>('PATCH', `/v1/finetunes/${id}`, { key, body });

    describe('PATCH', () => {
      it('changes what is sent and leaves the rest', async () => {
        const before = await find();
        const { status, body } = await patch({ title: 'Yours' });
        expect([status, body]).toEqual([200, { ...before, title: 'Yours' }]);
        expect((await patch({ metadata: { b: [1] } })).body).toEqual({
          ...before,
          title: 'Yours',
          metadata: { b: [1] },
        });
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
});
