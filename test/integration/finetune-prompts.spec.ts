import { FinetunePrompt, ImageTask } from '@app/domain';
import { JOB_BACK_END } from '@app/queue';
import type { JobBackEnd } from '@app/queue';
import { jobIdOf } from '@app/queue';
import { Client } from 'pg';
import { itOnce } from '../support/back-ends';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import type { ProblemJson, PromptJson } from '../support/factories';
import { drawTask, failTask, makeFinetune, makePrompts } from '../support/factories';

const wholeKeys = [
  'aspect_ratio',
  'cfg',
  'created_at',
  'error_message',
  'high_resolution',
  'id',
  'images',
  'metadata',
  'negative_prompt',
  'prompt',
  'seed',
  'steps',
];

describe('Prompts', () => {
  let api: TestApi;
  let key: TestKey;
  let finetuneId: string;
  let path: string;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
    finetuneId = (await makeFinetune(api, key)).id;
    path = `/v1/finetunes/${finetuneId}/prompts`;
  });
  afterAll(() => api.close());

  const post = (body: unknown) => api.request<PromptJson[] & ProblemJson>('POST', path, { key, body });
  const get = (id: string) => api.request<PromptJson>('GET', `${path}/${id}`, { key });
  const countPrompts = () => api.dataSource.manager.countBy(FinetunePrompt, { ownerId: key.id });

  describe('create', () => {
    itOnce('fills in every default, with cfg and seed as strings', async () => {
      const { status, body } = await post([{ prompt: 'a robot' }]);
      expect(status).toBe(201);
      const [{ id, seed, created_at, ...rest }] = body;
      expect(id).toMatch(/^[A-Za-z0-9_-]{24}$/);
      expect(seed).toMatch(/^\d{1,10}$/);
      expect(Number(seed)).toBeLessThanOrEqual(4_294_967_295);
      expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(rest).toEqual({
        prompt: 'a robot',
        negative_prompt: null,
        cfg: String(bundledDefaults.cfg),
        steps: bundledDefaults.steps,
        high_resolution: false,
        aspect_ratio: 'square',
        images: [],
        metadata: null,
        error_message: null,
      });
    });

    itOnce('returns what was sent; a later GET returns numbers and the word', async () => {
      const sent = {
        prompt: 'Portrait of a ROBOT, rain',
        negative_prompt: '',
        cfg: 8,
        steps: 50,
        seed: 4_294_967_295,
        high_resolution: true,
        aspect_ratio: ['portrait'],
        metadata: { nested: { list: [1, null, 'ü'] } },
      };
      const [created] = (await post([sent])).body;
      expect(Object.keys(created).sort()).toEqual(wholeKeys);
      expect(created).toMatchObject({ ...sent, cfg: '8', seed: '4294967295', aspect_ratio: 'portrait' });
      const { status, body } = await get(created.id);
      expect([status, body]).toEqual([200, { ...created, cfg: 8, seed: 4_294_967_295 }]);
      const list = await api.request('GET', path, { key });
      expect(list.body).toEqual([body]);
    });

    itOnce.each([
      [1, '1'],
      [20, '20'],
      [7.25, '7.25'],
      [1.1, '1.1'],
    ])('writes the cfg %d as "%s"', async (cfg, text) => {
      expect((await post([{ prompt: 'robot', cfg }])).body[0].cfg).toBe(text);
    });

    itOnce('keeps the order of 100 elements; the last is the newest', async () => {
      const { status, body } = await post(Array.from({ length: 100 }, (_, i) => ({ prompt: `robot ${i}`, seed: i })));
      expect(status).toBe(201);
      expect(body.map(({ prompt, seed }) => [prompt, seed])).toEqual(
        Array.from({ length: 100 }, (_, i) => [`robot ${i}`, String(i)]),
      );
      const list = await api.request<PromptJson[]>('GET', path, { key });
      expect(list.body.map(({ id }) => id)).toEqual(body.map(({ id }) => id).reverse());
      expect(new Set(body.map(({ id }) => id)).size).toBe(100);
    });

    itOnce('makes as many queries for 100 Prompts as for two', async () => {
      const count = async (length: number) => {
        const query = jest.spyOn(Client.prototype, 'query');
        const { status } = await post(Array.from({ length }, () => ({ prompt: 'robot' })));
        const queries = query.mock.calls.length;
        query.mockRestore();
        expect(status).toBe(201);
        return queries;
      };
      const two = await count(2);
      // The key, the Fine-Tune, and a transaction with one insert. The sweepers run queries now and then, too.
      expect(two).toBeGreaterThanOrEqual(5);
      expect(await count(100)).toBeLessThan(two + 50);
    });

    it('makes the task and its job, and adds the token if the text lacks it', async () => {
      const { id } = await makeFinetune(api, key, { name: 'tin robot', token: 'ohwx', model: 'shapes' });
      const [first, second] = await makePrompts(api, key, id, [
        { prompt: 'a Tin Robot by a tin robot' },
        { prompt: 'the ohwx tin robot', steps: 3 },
      ]);
      expect(first.prompt).toBe('a Tin Robot by a tin robot');
      const [task, other] = [first, second].map((prompt) =>
        api.dataSource.manager.findOneByOrFail(ImageTask, { id: prompt.id }),
      );
      expect(await task).toMatchObject({
        kind: 'prompt',
        ownerId: key.id,
        finetuneId: id,
        prompt: 'a ohwx Tin Robot by a ohwx tin robot',
        model: 'shapes',
        numImages: 1,
        status: 'queued',
      });
      expect(await other).toMatchObject({ prompt: 'the ohwx tin robot', steps: 3 });
      const jobs = api.app.get<JobBackEnd>(JOB_BACK_END);
      for (const prompt of [first, second])
        expect(await jobs.presence('images', jobIdOf(prompt.id, 1))).toBe('waiting');
    });

    itOnce('reports every text without the name and creates nothing', async () => {
      const { status, body } = await post([{ prompt: 'a robot' }, { prompt: 'robots' }, { prompt: 'zwx' }]);
      expect([status, body.code]).toEqual([422, 'PromptDoesNotIncludeFineTuneName']);
      expect(body.errors?.map(({ pointer }) => pointer)).toEqual(['/1/prompt', '/2/prompt']);
      expect(await countPrompts()).toBe(0);
    });

    itOnce.each([
      ['no array', { prompt: 'a robot' }, 'ValidationFailed', ''],
      ['no element', [], 'ValidationFailed', ''],
      ['101 elements', Array.from({ length: 101 }, () => ({ prompt: 'robot' })), 'ValidationFailed', ''],
      ['an element that is no object', [{ prompt: 'robot' }, 'robot'], 'ValidationFailed', '/1'],
      ['no prompt', [{ prompt: 'robot' }, { cfg: 7 }], 'PromptMissing', '/1/prompt'],
      ['an empty prompt', [{ prompt: '' }], 'PromptMissing', '/0/prompt'],
      ['a long prompt', [{ prompt: `robot${' '.repeat(1996)}` }], 'ValidationFailed', '/0/prompt'],
      [
        'a long negative prompt',
        [{ prompt: 'robot', negative_prompt: 'x'.repeat(2001) }],
        'ValidationFailed',
        '/0/negative_prompt',
      ],
      ['a cfg that is a string', [{ prompt: 'robot', cfg: '7.5' }], 'ValidationFailed', '/0/cfg'],
      ['a cfg below', [{ prompt: 'robot', cfg: 0.99 }], 'ValidationFailed', '/0/cfg'],
      ['a cfg above', [{ prompt: 'robot', cfg: 20.01 }], 'ValidationFailed', '/0/cfg'],
      ['no step', [{ prompt: 'robot', steps: 0 }], 'ValidationFailed', '/0/steps'],
      ['51 steps', [{ prompt: 'robot', steps: 51 }], 'ValidationFailed', '/0/steps'],
      ['half a step', [{ prompt: 'robot', steps: 1.5 }], 'ValidationFailed', '/0/steps'],
      ['a seed below', [{ prompt: 'robot', seed: -1 }], 'ValidationFailed', '/0/seed'],
      ['a seed above', [{ prompt: 'robot', seed: 4_294_967_296 }], 'ValidationFailed', '/0/seed'],
      ['two shapes', [{ prompt: 'robot', aspect_ratio: ['square', 'square'] }], 'ValidationFailed', '/0/aspect_ratio'],
      ['an unknown shape', [{ prompt: 'robot', aspect_ratio: 'Square' }], 'ValidationFailed', '/0/aspect_ratio'],
      [
        'a flag that is a word',
        [{ prompt: 'robot', high_resolution: 'true' }],
        'ValidationFailed',
        '/0/high_resolution',
      ],
      ['metadata that is an array', [{ prompt: 'robot', metadata: [] }], 'ValidationFailed', '/0/metadata'],
      ['an unknown field', [{ prompt: 'robot', num_generations: 1 }], 'ValidationFailed', '/0/num_generations'],
    ])('rejects %s and creates nothing', async (_, sent, code, pointer) => {
      const { status, body } = await post(sent);
      expect([status, body.code, body.errors?.map((error) => error.pointer)]).toEqual([400, code, [pointer]]);
      expect(await countPrompts()).toBe(0);
    });

    itOnce('rejects a Fine-Tune whose model is no longer installed', async () => {
      await api.dataSource.query(`UPDATE finetunes SET model = 'gone' WHERE id = $1`, [finetuneId]);
      const { status, body } = await post([{ prompt: 'robot' }]);
      expect([status, body.code, body.errors]).toEqual([422, 'ModelNotInstalled', undefined]);
      expect(await countPrompts()).toBe(0);
    });

    itOnce.each([
      ['of hyphens and one letter', '- - - - - - - - x', 422],
      // A new Fine-Tune may not have such a name, but an older one may.
      ['of hyphens alone', '- - - - - - - - -', 201],
    ])('answers at once if the name is one %s', async (_, name, expected) => {
      await api.dataSource.query('UPDATE finetunes SET name = $2 WHERE id = $1', [finetuneId, name]);
      const { status, body } = await post(Array(100).fill({ prompt: '-'.repeat(2000) }));
      expect(status).toBe(expected);
      if (expected === 422) expect(body.errors?.at(-1)).toEqual({ message: 'and 80 more' });
    });

    itOnce('finds a name in any Unicode form, and keeps the text as it was sent', async () => {
      await api.dataSource.query('UPDATE finetunes SET name = $2 WHERE id = $1', [finetuneId, 'caf\u00e9']);
      const [made] = await makePrompts(api, key, finetuneId, [{ prompt: 'a cafe\u0301 at night' }]);
      expect(made.prompt).toBe('a cafe\u0301 at night');
      const { prompt } = await api.dataSource.manager.findOneByOrFail(ImageTask, { id: made.id });
      expect(prompt).toBe('a zwx cafe\u0301 at night');
    });
  });

  describe('a finished Prompt', () => {
    it('has the URL of its picture, which needs no key', async () => {
      const [{ id }] = await makePrompts(api, key, finetuneId);
      await drawTask(api, id);
      const { body } = await get(id);
      expect(Object.keys(body).sort()).toEqual(wholeKeys);
      expect(body.images).toHaveLength(1);
      expect(body.images[0]).toMatch(/\/images\/[A-Za-z0-9_-]{24}\.png$/);
      const picture = await api.request('GET', new URL(body.images[0]).pathname);
      expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/png']);
      const list = await api.request<PromptJson[]>('GET', path, { key });
      expect(list.body[0]).toEqual(body);
    });

    itOnce('says why it failed', async () => {
      const [{ id }] = await makePrompts(api, key, finetuneId);
      await failTask(api, id, 'The weights do not fit the model.');
      expect((await get(id)).body).toMatchObject({ error_message: 'The weights do not fit the model.', images: [] });
    });
  });

  describe('findAll', () => {
    itOnce('pages, newest first, and shows only the Prompts of its own Fine-Tune', async () => {
      const other = await makeFinetune(api, key);
      await makePrompts(api, key, other.id);
      const made = await makePrompts(
        api,
        key,
        finetuneId,
        [1, 2, 3].map((i) => ({ prompt: `robot ${i}` })),
      );
      const list = (query: string) => api.request<PromptJson[] & ProblemJson>('GET', `${path}${query}`, { key });
      const first = await list('?limit=2');
      expect(first.body.map(({ prompt }) => prompt)).toEqual(['robot 3', 'robot 2']);
      const next = /^<[^>?]*(\?[^>]*)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1];
      const second = await list(next!);
      expect([second.body.map(({ id }) => id), second.headers.get('link')]).toEqual([[made[0].id], null]);
      const [elsewhere] = (await api.request<PromptJson[]>('GET', `/v1/finetunes/${other.id}/prompts`, { key })).body;
      for (const query of [`?after=${elsewhere.id}`, '?after=x', '?limit=0', '?limit=101', '?limit=1&limit=2'])
        expect((await list(query)).status).toBe(400);
    });
  });

  describe('an id that is not the caller’s', () => {
    itOnce('is treated as unknown on every route, and changes nothing', async () => {
      const stranger = await api.createKey();
      const [{ id }] = await makePrompts(api, key, finetuneId);
      const own = await makeFinetune(api, stranger);
      const unknown = 'A'.repeat(24);
      const headers = { 'x-request-id': 'same' };
      const answer = async (method: string, url: string, body?: unknown) => {
        const reply = await api.request(method, url, { key: stranger, headers, body });
        return [reply.status, reply.text];
      };
      const prompts = [{ prompt: 'robot' }];
      for (const [method, rest, body] of [
        ['GET', '/prompts'],
        ['POST', '/prompts', prompts],
        ['POST', '/styles', [{ id: unknown }]],
        ['GET', `/prompts/${id}`],
        ['DELETE', `/prompts/${id}`],
      ] as const) {
        const found = await answer(method, `/v1/finetunes/${finetuneId}${rest}`, body);
        expect(found[0]).toBe(404);
        expect(found).toEqual(await answer(method, `/v1/finetunes/${unknown}${rest}`, body));
      }
      for (const method of ['GET', 'DELETE']) {
        const found = await answer(method, `/v1/finetunes/${own.id}/prompts/${id}`);
        expect(found[0]).toBe(404);
        expect(found).toEqual(await answer(method, `/v1/finetunes/${own.id}/prompts/${unknown}`));
      }
      expect((await get(id)).status).toBe(200);
      expect(await countPrompts()).toBe(1);
    });
  });
});
