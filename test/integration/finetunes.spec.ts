import { Finetune } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { FinetuneJson, ProblemJson } from '../support/factories';
import { drawTask, makeFinetune, makePrompts, storedKeys } from '../support/factories';

describe('Fine-Tunes', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi({ MODEL_FALLBACK: 'off' });
  });
  beforeEach(async () => {
    key = await api.createKey();
  });
  afterAll(() => api.close());

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
      const { note, ...rest } = body;
      expect(found).toMatchObject(rest);
      expect(note).toMatch(/^The 4 URLs of images_url were checked and are not kept: nothing is trained here\./);
    });

    it('draws pictures when the body has a prompt', async () => {
      const { status, body } = await register({ prompt: 'a red circle', model });
      expect(status).toBe(201);
      expect(body).toMatchObject({ prompt: 'a red circle', status: 'queued', num_generations: 1 });
      expect((await api.request('GET', `/v1/sd/text-to-image/${body.id}`, { key })).status).toBe(200);
    });

    it.each([
      ['no field', {}, 400, 'PromptMissing', '/prompt'],
      ['only fields of both', { model, metadata: {} }, 400, 'PromptMissing', '/prompt'],
      ['a title without a name', { title: 'x' }, 400, 'FineTuneNameMissing', '/name'],
      ['pictures without a name', { images_url: images(5) }, 400, 'FineTuneNameMissing', '/name'],
      ['name and prompt', { name: 'robot', prompt: 'a robot' }, 400, 'ValidationFailed', '/name'],
      ['no pictures', { name: 'robot', model, images_url: [] }, 400, 'FineTuneImagesMissing', '/images_url'],
      ['three', { name: 'robot', model, images_url: images(3) }, 400, 'FineTuneImagesNotEnough', '/images_url'],
      ['101 pictures', { name: 'robot', model, images_url: images(101) }, 400, 'ValidationFailed', '/images_url'],
      ['a file', { name: 'robot', images_url: ['file:///x', ...images(4)] }, 400, 'ValidationFailed', '/images_url/0'],
      ['an empty name', { name: ' ' }, 400, 'FineTuneNameMissing', '/name'],
      ['a name that is null', { name: null, title: 'x' }, 400, 'FineTuneNameMissing', '/name'],
      ['a long name', { name: 'x'.repeat(201) }, 400, 'ValidationFailed', '/name'],
      ['a NUL in the title', { name: 'robot', title: '\0' }, 400, 'ValidationFailed', '/title'],
      ['a long token', { name: 'robot', token: 'x'.repeat(65) }, 400, 'ValidationFailed', '/token'],
      ['a token of two words', { name: 'robot', token: 'a b' }, 400, 'ValidationFailed', '/token'],
      ['an unknown field', { name: 'robot', nom: 'x' }, 400, 'ValidationFailed', '/nom'],
      ['a model that is not there', { name: 'robot', model: 'sd2.1' }, 422, 'ModelNotInstalled', '/model'],
      ['a model that is no name', { name: 'robot', model: '../shapes' }, 400, 'ValidationFailed', '/model'],
    ])('rejects %s', async (_, body, status, code, pointer) => {
      const reply = await register(body);
      expect([reply.status, reply.body.code, reply.body.errors?.map((error) => error.pointer)]).toEqual([
        status,
        code,
        [pointer],
      ]);
      expect(await api.dataSource.manager.countBy(Finetune, { ownerId: key.id })).toBe(0);
    });
  });

  describe('remove', () => {
    it('leaves no row and no file of it, and touches nothing else', async () => {
      const kept = await makeFinetune(api, key, { model });
      const [keptPrompt] = await makePrompts(api, key, kept.id);
      await drawTask(api, keptPrompt.id);
      const [rowsBefore, filesBefore] = [await countRows(api), await storedKeys(api)];

      const { id } = await makeFinetune(api, key, { model });
      const prompts = await makePrompts(api, key, id, [
        { prompt: 'a robot' },
        { prompt: 'robot' },
        { prompt: 'Robot!' },
      ]);
      await drawTask(api, prompts[0].id);
      await drawTask(api, prompts[1].id);
      // A picture and a thumbnail of each.
      expect((await storedKeys(api)).length).toBe(filesBefore.length + 4);

      const { status, body } = await api.request('DELETE', `/v1/finetunes/${id}`, { key });
      expect([status, body]).toEqual([200, { delete: `Fine-Tune ${id} has been deleted successfully.` }]);
      expect(await countRows(api)).toEqual(rowsBefore);
      expect(await storedKeys(api)).toEqual(filesBefore);
      expect((await api.request('GET', `/v1/finetunes/${id}`, { key })).status).toBe(404);
      expect((await api.request('DELETE', `/v1/finetunes/${id}`, { key })).status).toBe(404);
    });
  });
});

/** Rows of every table that is related to Fine-Tunes. */
async function countRows(api: TestApi): Promise<Record<string, string>> {
  const tables = ['finetunes', 'finetune_prompts', 'tasks', 'images'];
  const [counts] = await api.dataSource.query<Record<string, string>[]>(
    `SELECT ${tables.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`).join(', ')}`,
  );
  return counts;
}
