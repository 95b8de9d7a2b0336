import { Drawing, FinetunePrompt, Task } from '@app/domain';
import { Client } from 'pg';
import { Tasks, progressChannel, stopChannel } from '@app/tasks';
import { Webhook } from 'standardwebhooks';
import { startTestApi, type TestApi } from '../support/api';
import { claimTask } from '../support/claim-task';
import { bundledDefaults } from '../support/bundled-defaults';
import {
  drawTask,
  failTask,
  makeFinetune,
  makePrompts,
  type ProblemJson,
  type PromptJson,
  storedKeys,
} from '../support/factories';
import { openEvents } from '../support/event-source';
import { until } from '../support/until';
import { receiversOfSuite } from '../support/receiver';
import { drawingOf } from '../support/drawing-rows';
import { ofSuite, ofTest } from '../support/of-suite';

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
interface StatusJson {
  status: string;
  queue_position: number | null;
  step: number | null;
  [field: string]: unknown;
}
/** Listens on a PostgreSQL channel; the returned function waits for one payload and stops listening. */
async function listen(api: TestApi, channel: string): Promise<(payload: string) => Promise<void>> {
  const client = new Client({ connectionString: api.config.databaseUrl });
  await client.connect();
  await client.query(`LISTEN ${channel}`);
  const heard = new Set<string>();
  let wake = () => undefined as void;
  client.on('notification', ({ payload }) => {
    heard.add(payload ?? '');
    wake();
  });
  return async (payload) => {
    while (!heard.has(payload)) await new Promise<void>((resolve) => (wake = resolve));
    await client.end();
  };
}

const api = ofSuite(startTestApi);

describe('Prompts', () => {
  const key = ofTest(() => api.createKey());
  let finetuneId: string;
  let path: string;

  beforeEach(async () => {
    finetuneId = (await makeFinetune(api, key)).id;
    path = `/v1/finetunes/${finetuneId}/prompts`;
  });
  const post = (body: unknown) => api.request<PromptJson[] & ProblemJson>('POST', path, { key, body });
  const get = (id: string) => api.request<PromptJson>('GET', `${path}/${id}`, { key });
  const countPrompts = () => api.dataSource.manager.countBy(FinetunePrompt, { ownerId: key.id });

  describe('create', () => {
    it('fills in every default, with cfg and seed as strings', async () => {
      const { status, body } = await post([{ prompt: 'a robot' }, { prompt: 'a robot' }]);
      expect(status).toBe(201);
      const [{ id, seed, created_at, ...rest }, other] = body;
      expect(id).toMatch(/^[A-Za-z0-9_-]{24}$/);
      expect(seed).toMatch(/^\d{1,10}$/);
      expect(Number(seed)).toBeLessThanOrEqual(4_294_967_295);
      expect(other.seed).not.toBe(seed);
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

    it('returns what was sent; a later GET returns numbers and the word', async () => {
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

    it('makes as many queries for 100 Prompts as for two', async () => {
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

    it('makes the task, and adds the token if the text lacks it', async () => {
      const { id } = await makeFinetune(api, key, { name: 'tin robot', token: 'ohwx', model: 'shapes' });
      const [first, second] = await makePrompts(api, key, id, [
        { prompt: 'a Tin Robot by a tin robot' },
        { prompt: 'the ohwx tin robot', steps: 3 },
      ]);
      expect(first.prompt).toBe('a Tin Robot by a tin robot');
      const [task, other] = [first, second].map((prompt) => drawingOf(api.dataSource.manager, prompt.id));
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
    });

    it('reports every text without the name and creates nothing', async () => {
      const { status, body } = await post([{ prompt: 'a robot' }, { prompt: 'robots' }, { prompt: 'zwx' }]);
      expect([status, body.code]).toEqual([422, 'PromptDoesNotIncludeFineTuneName']);
      expect(body.errors?.map(({ pointer }) => pointer)).toEqual(['/1/prompt', '/2/prompt']);
      expect(await countPrompts()).toBe(0);
    });

    it('rejects a Fine-Tune whose model is no longer installed', async () => {
      await api.dataSource.query(`UPDATE finetunes SET model = 'gone' WHERE id = $1`, [finetuneId]);
      const { status, body } = await post([{ prompt: 'robot' }]);
      expect([status, body.code, body.errors]).toEqual([422, 'ModelNotInstalled', undefined]);
      expect(await countPrompts()).toBe(0);
    });

    it.each([
      ['of hyphens and one letter', '- - - - - - - - x', 422],
      // A new Fine-Tune may not have such a name, but an older one may.
      ['of hyphens alone', '- - - - - - - - -', 201],
    ])('answers at once if the name is one %s', async (_, name, expected) => {
      await api.dataSource.query('UPDATE finetunes SET name = $2 WHERE id = $1', [finetuneId, name]);
      const { status, body } = await post(Array(100).fill({ prompt: '-'.repeat(2000) }));
      expect(status).toBe(expected);
      if (expected === 422) expect(body.errors?.at(-1)).toEqual({ message: 'and 80 more' });
    });

    it('finds a name in any Unicode form, and keeps the text as it was sent', async () => {
      await api.dataSource.query('UPDATE finetunes SET name = $2 WHERE id = $1', [finetuneId, 'caf\u00e9']);
      const [made] = await makePrompts(api, key, finetuneId, [{ prompt: 'a cafe\u0301 at night' }]);
      expect(made.prompt).toBe('a cafe\u0301 at night');
      const { prompt } = await api.dataSource.manager.findOneByOrFail(Drawing, { id: made.id });
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

    it('says why it failed', async () => {
      const [{ id }] = await makePrompts(api, key, finetuneId);
      await failTask(api, id, 'The weights do not fit the model.');
      expect((await get(id)).body).toMatchObject({ error_message: 'The weights do not fit the model.', images: [] });
    });
  });
});

describe('The status of a Prompt', () => {
  const key = ofTest(() => api.createKey());
  let finetuneId: string;

  beforeEach(async () => {
    finetuneId = (await makeFinetune(api, key)).id;
  });
  const pathOf = (id: string) => `/v1/finetunes/${finetuneId}/prompts/${id}`;
  const statusOf = async (id: string) => (await api.request<StatusJson>('GET', `${pathOf(id)}/status`, { key })).body;

  it('has its place in the queue, then its step, then what drew it', async () => {
    const [first, second] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', steps: 4 },
      { prompt: 'a robot', steps: 4 },
    ]);
    const [before, after] = [await statusOf(first.id), await statusOf(second.id)];
    expect(after).toEqual({
      status: 'queued',
      user: null,
      queue_position: after.queue_position,
      step: 0,
      steps: 4,
      width: 512,
      height: 512,
      served_by: null,
      upscaler: null,
      filtered: 0,
      flagged: [],
      prompt_chunks: 1,
      started_at: second.created_at,
      completed_at: null,
      metrics: null,
      thumbnail: null,
      ...{ num_generations: 1, scheduler: 'ddim', output_format: 'png', prompt_weighting: false, control: [] },
    });
    // Both were accepted in the same moment, so either may be the first.
    expect(before.queue_position).not.toBe(after.queue_position);
    expect([before.queue_position, after.queue_position]).toEqual([expect.any(Number), expect.any(Number)]);
    const tasks = api.app.get(Tasks);
    const task = await claimTask(api.dataSource.manager, first.id);
    const step = { id: first.id, attempt: 1, step: 3, total: 4 };
    await tasks.recordServed(task, { servedBy: 'shapes@0123456789ab' });
    await api.dataSource.query('SELECT pg_notify($1, $2)', [progressChannel, JSON.stringify(step)]);
    await until(async () => (await statusOf(first.id)).step === 3, 'the step is known');
    expect(await statusOf(first.id)).toMatchObject({
      status: 'processing',
      queue_position: null,
      served_by: 'shapes@0123456789ab',
    });
    const served = { servedBy: 'shapes@0123456789ab', promptChunks: 2 };
    await tasks.settle(task, { status: 'succeeded', images: [], served });
    const { completed_at, ...ended } = await statusOf(first.id);
    expect(ended).toMatchObject({ status: 'succeeded', queue_position: null, step: 4, prompt_chunks: 2 });
    expect(completed_at).toMatch(/Z$/);
    await drawTask(api, second.id);
  });

  it('is in the last event of its stream, together with the Prompt', async () => {
    const [{ id }] = await makePrompts(api, key, finetuneId);
    await failTask(api, id, 'No more paint.');
    const stream = await openEvents(`${api.baseUrl}${pathOf(id)}/events`, key.token);
    const { event, data } = (await stream.next())!;
    const prompt = (await api.request('GET', pathOf(id), { key })).body;
    const { queue_position: _position, step: _step, ...status } = await statusOf(id);
    expect([event, data]).toEqual(['terminated', { ...prompt, ...status }]);
    expect(status.status).toBe('failed');
  });

  it('has no queue_position while a Prompt of a sandbox key takes the time that it asked for', async () => {
    Object.assign(key, await api.createKey({ sandbox: true }));
    finetuneId = (await makeFinetune(api, key)).id;
    const [{ id }] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', metadata: { sandbox: { delay_ms: 600_000 } } },
    ]);
    await until(async () => (await statusOf(id)).status === 'processing', 'it is being drawn');
    expect((await statusOf(id)).queue_position).toBeNull();
  });

  it('is 404 under another Fine-Tune', async () => {
    const [{ id }] = await makePrompts(api, key, finetuneId);
    const { id: another } = await makeFinetune(api, key);
    expect((await api.request('GET', `/v1/finetunes/${another}/prompts/${id}/status`, { key })).status).toBe(404);
  });
});

describe('The removal of a Prompt', () => {
  const key = ofTest(() => api.createKey());
  let finetuneId: string;
  let path: string;

  beforeEach(async () => {
    finetuneId = (await makeFinetune(api, key)).id;
    path = `/v1/finetunes/${finetuneId}/prompts`;
  });
  const get = (id: string) => api.request<PromptJson>('GET', `${path}/${id}`, { key });
  const countPrompts = () => api.dataSource.manager.countBy(FinetunePrompt, { ownerId: key.id });

  it('cancels what is being drawn and removes row, task and pictures', async () => {
    const filesBefore = await storedKeys(api);
    const [drawn, drawing] = await makePrompts(api, key, finetuneId, [{ prompt: 'robot' }, { prompt: 'robot' }]);
    await drawTask(api, drawn.id);
    const [url] = (await get(drawn.id)).body.images;
    const tasks = api.app.get(Tasks);
    const task = await claimTask(api.dataSource.manager, drawing.id);
    const stopped = await listen(api, stopChannel);
    for (const { id } of [drawn, drawing]) {
      const { status, body } = await api.request('DELETE', `${path}/${id}`, { key });
      expect([status, body]).toEqual([200, { delete: `Prompt ${id} has been deleted successfully.` }]);
      expect((await get(id)).status).toBe(404);
    }
    await stopped(drawing.id);
    expect(await tasks.settle(task, { status: 'succeeded' })).toBe(false);
    expect((await api.request('GET', new URL(url).pathname)).status).toBe(404);
    expect([await countPrompts(), await storedKeys(api)]).toEqual([0, filesBefore]);
  });

  it('stops the worker when the whole Fine-Tune is deleted', async () => {
    const [{ id }] = await makePrompts(api, key, finetuneId);
    await claimTask(api.dataSource.manager, id);
    const stopped = await listen(api, stopChannel);
    await api.request('DELETE', `/v1/finetunes/${finetuneId}`, { key });
    await stopped(id);
  });

  it('leaves nothing behind when the Fine-Tune is deleted at the same time', async () => {
    const replies = await Promise.all([
      ...Array.from({ length: 4 }, () => api.request('POST', path, { key, body: [{ prompt: 'robot' }] })),
      api.request('DELETE', `/v1/finetunes/${finetuneId}`, { key }),
    ]);
    for (const { status } of replies.slice(0, 4)) expect([201, 404]).toContain(status);
    expect(replies[4].status).toBe(200);
    expect([await countPrompts(), await api.dataSource.manager.countBy(Task, { ownerId: key.id })]).toEqual([0, 0]);
  });
});

describe('The webhook of a Prompt', () => {
  const key = ofTest(() => api.createKey());
  let finetuneId: string;
  const receiver = receiversOfSuite();

  beforeEach(async () => {
    finetuneId = (await makeFinetune(api, key)).id;
  });
  const pathOf = (id: string) => `/v1/finetunes/${finetuneId}/prompts/${id}`;

  it('gets the Prompt as GET returns it, signed, when it has been drawn', async () => {
    const { url, next } = await receiver();
    const [told, silent] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', webhook: url, metadata: { a: 1 } },
      { prompt: 'a robot' },
    ]);
    for (const prompt of [told, silent]) expect(Object.keys(prompt)).not.toContain('webhook');
    await drawTask(api, silent.id);
    await drawTask(api, told.id);
    const { headers, body } = await next(1);
    const { text } = await api.request('GET', pathOf(told.id), { key });
    expect(body).toBe(text);
    expect(Object.keys(JSON.parse(body) as object)).not.toContain('webhook');
    new Webhook(key.webhookSecret).verify(body, headers as Record<string, string>);
  });

  it('gets a Prompt that a Style has made', async () => {
    const { url, next } = await receiver();
    const [source] = await makePrompts(api, key, finetuneId, [{ prompt: 'a robot' }]);
    const collection = await api.request<{ id: string }>('POST', '/v1/prompts/collections', {
      key,
      body: { name: 'robots', styles: [{ id: source.id, name: 'a robot' }] },
    });
    const { status, body } = await api.request<object[]>('POST', `/v1/finetunes/${finetuneId}/styles`, {
      key,
      body: [{ id: collection.body.id, webhook: url }],
    });
    expect([status, body.map((made) => 'webhook' in made)]).toEqual([201, [false]]);
    const [{ id }] = body as { id: string }[];
    await drawTask(api, id);
    expect(JSON.parse((await next(1)).body)).toMatchObject({ id });
  });

  it('gets nothing of a Prompt that was deleted', async () => {
    const { url, next, received } = await receiver();
    const [deleted, drawn] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', webhook: url },
      { prompt: 'a robot', webhook: url },
    ]);
    await api.request('DELETE', pathOf(deleted.id), { key });
    await drawTask(api, drawn.id);
    expect(JSON.parse((await next(1)).body)).toMatchObject({ id: drawn.id });
    expect(received).toHaveLength(1);
    const [{ count }] = await api.dataSource.query<{ count: string }[]>(
      'SELECT count(*) FROM webhook_deliveries WHERE owner_id = $1',
      [key.id],
    );
    expect(Number(count)).toBe(1);
    await api.request('DELETE', pathOf(drawn.id), { key });
    const rows: unknown[] = await api.dataSource.query('SELECT FROM webhook_deliveries WHERE owner_id = $1', [key.id]);
    expect(rows).toHaveLength(0);
  });

  it('is refused with its place where it is a private address', async () => {
    const strict = await startTestApi({ WEBHOOK_ALLOW_PRIVATE: 'false' });
    try {
      const owner = await strict.createKey();
      const { id } = await makeFinetune(strict, owner);
      const webhook = 'http://10.0.0.1/';
      for (const [path, element] of [
        ['prompts', { prompt: 'a robot' }],
        ['styles', { id }],
      ] as const) {
        const { status, body } = await strict.request<ProblemJson>('POST', `/v1/finetunes/${id}/${path}`, {
          key: owner,
          body: [element, { ...element, webhook }],
        });
        expect([status, body.code, body.errors?.[0].pointer]).toEqual([422, 'WebhookAddressRefused', '/1/webhook']);
      }
    } finally {
      await strict.close();
    }
  });
});
