import { DailyUsage, Task } from '@app/domain';
import { type Reply, startTestApi, type TestKey } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import { drawTask, failTask, makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { until } from '../support/until';
import { ofSuite, ofTest } from '../support/of-suite';

interface GenerationJson {
  id: string;
  status: string;
  seed: number;
  [field: string]: unknown;
}
const path = '/v1/sd/text-to-image';

const api = ofSuite(startTestApi);

describe('Generations', () => {
  const key = ofSuite(() => api.createKey());

  const create = (body: object) => api.request<GenerationJson>('POST', '/v1/sd/text-to-image', { key, body });

  describe('create', () => {
    it('returns 201 with the whole record and every default filled in', async () => {
      const { status, body, headers } = await create({ prompt: 'a red circle' });
      expect(status).toBe(201);
      expect(headers.get('x-request-id')).toBeTruthy();
      const { id, seed, started_at, ...rest } = body;
      expect(id).toMatch(/^[A-Za-z0-9_-]{24}$/);
      expect(Number.isInteger(seed) && seed >= 0 && seed <= 4_294_967_295).toBe(true);
      expect(started_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(rest).toEqual({
        prompt: 'a red circle',
        negative_prompt: null,
        aspect_ratio: 'square',
        width: 512,
        height: 512,
        webhook: null,
        model: 'sd1.5',
        num_generations: 1,
        metadata: null,
        error: null,
        status: 'queued',
        images: [],
        thumbnail: null,
        ...bundledDefaults,
        high_resolution: false,
        output_format: 'png',
        prompt_weighting: false,
        user: null,
        finetunes: [],
        image: null,
        references: [],
        strength: null,
        mask: null,
        outpaint: null,
        control: [],
        prompt_chunks: 1,
        upscaler: null,
        filtered: 0,
        flagged: [],
        served_by: null,
        completed_at: null,
        metrics: null,
      });
    });

    it('returns what was sent, with metadata keys in the same order', async () => {
      const sent = {
        prompt: 'ein roter Kreis 🔴',
        negative_prompt: '',
        aspect_ratio: 'portrait',
        webhook: 'https://example.com/hook?x=1',
        model: 'shapes',
        num_generations: 8,
        metadata: { zebra: 1, alpha: [true, null, { deep: 'ü' }], '1': 2.5 },
        cfg: 20,
        steps: 50,
        seed: 4_294_967_295,
        scheduler: 'euler',
        output_format: 'webp',
        prompt_weighting: true,
      };
      const { status, body } = await create(sent);
      expect(status).toBe(201);
      expect(body).toMatchObject(sent);
      expect(JSON.stringify(body.metadata)).toBe(JSON.stringify(sent.metadata));
      const found = await api.request<GenerationJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
      expect(found.body).toEqual(body);
    });
  });

  describe('authentication', () => {
    it.each([
      ['no header', undefined],
      ['another scheme', 'Basic dXNlcjpwYXNz'],
      ['a key without the scheme', 'dr_000000000000_x'],
      ['an unknown key', `Bearer dr_000000000000_${'a'.repeat(43)}`],
      ['words behind the key', 'Bearer a b'],
    ])('answers 401 to %s', async (_, authorization) => {
      const reply = await api.request<ProblemJson>('GET', '/v1/sd/text-to-image', {
        ...(authorization && { headers: { authorization } }),
      });
      expect(reply.status).toBe(401);
      expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(reply.body.code).toBe('Unauthorized');
    });

    it('answers 401 to a wrong secret behind a known prefix, and to a revoked key', async () => {
      const wrong = `${key.token.slice(0, -1)}${key.token.endsWith('A') ? 'B' : 'A'}`;
      const revoked = await api.createKey({ revokedAt: new Date() });
      for (const token of [wrong, revoked.token])
        expect((await api.request('GET', '/v1/sd/text-to-image', { key: { token } })).status).toBe(401);
    });
  });

  describe('list', () => {
    it('names all parameters of a query that are wrong', async () => {
      const query = 'limit=x&order=y&status=done&created_after=today&created_before=2026-11-20&after=x&page=2';
      const { body } = await api.request<ProblemJson>('GET', `/v1/sd/text-to-image?${query}`, { key });
      const names = ['order', 'page', 'limit', 'after', 'status', 'created_after'];
      expect(body.errors?.map(({ parameter }) => parameter)).toEqual(names);
      expect(body.detail).toMatch(/^The query parameter "order" is not known here; .+ \(one of 6 problems\)\.$/);
    });

    it('counts those of a query that are more than twenty', async () => {
      const query = Array.from({ length: 23 }, (_, i) => `x${i}`).join('&');
      const { body } = await api.request<ProblemJson>('GET', `/v1/sd/text-to-image?${query}`, { key });
      expect([body.errors?.length, body.errors?.at(-1)]).toEqual([21, { message: 'and 3 more' }]);
    });
  });

  describe('cancel', () => {
    it('cancels a queued one for good', async () => {
      const { body } = await create({ prompt: 'x' });
      const canceled = await api.request<GenerationJson>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
      expect(canceled.status).toBe(201);
      expect(canceled.body.status).toBe('canceled');
      expect(canceled.body.completed_at).not.toBeNull();
      const again = await api.request<GenerationJson>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
      expect(again.body).toEqual(canceled.body);
    });

    it('refuses to cancel one that has succeeded', async () => {
      const { body } = await create({ prompt: 'x' });
      await api.dataSource.manager.update(Task, { id: body.id }, { status: 'succeeded', completedAt: new Date() });
      const reply = await api.request<ProblemJson>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 409, code: 'GenerationTerminated' });
    });
  });
});

describe('Prefer: wait', () => {
  interface GenerationJson {
    id: string;
    status: string;
    images: string[];
  }
  const key = ofTest(() => api.createKey());

  const create = (headers: Record<string, string>, options: { key?: TestKey; signal?: AbortSignal } = {}, to = path) =>
    api.request<GenerationJson>('POST', to, { key: options.key ?? key, body: { prompt: 'x' }, headers });
  const newest = async (owner = key) => {
    const { body } = await api.request<GenerationJson[]>('GET', `${path}?limit=1`, { key: owner });
    return body[0]?.id;
  };

  it.each([path, '/v1/finetunes'])('at %s answers with the terminated record', async (to) => {
    const answer = create({ prefer: 'respond-async, wait=60' }, {}, to);
    const id = await until(newest, 'it is queued');
    await drawTask(api, id);
    const { status, headers, body } = await answer;
    expect([status, headers.get('preference-applied'), body.status]).toEqual([201, 'wait=60', 'succeeded']);
    expect(body).toEqual((await api.request('GET', `${path}/${id}`, { key })).body);
    expect(body.images).toHaveLength(1);
  });

  it('without a number means a minute', async () => {
    const answer = create({ prefer: 'wait' });
    await drawTask(api, await until(newest, 'it is queued'));
    const { headers, body } = await answer;
    expect([headers.get('preference-applied'), body.status]).toEqual(['wait=60', 'succeeded']);
  });

  it('answers with the queued record when the time is over', async () => {
    const { status, headers, body } = await create({ prefer: 'wait=1' });
    expect([status, headers.get('preference-applied'), body.status]).toEqual([201, 'wait=1', 'queued']);
  });

  it('answers as a GET does when the Generation is deleted meanwhile', async () => {
    const answer = create({ prefer: 'wait=60' });
    const id = await until(newest, 'it is queued');
    await api.request('DELETE', `${path}/${id}`, { key });
    const { status, body, headers } = await answer;
    expect([status, (body as unknown as ProblemJson).code]).toEqual([404, 'GenerationNotFound']);
    expect(headers.get('location')).toBeNull();
  });

  it('applies at most a minute, and says so', async () => {
    const answer = create({ prefer: 'wait=3600' });
    await drawTask(api, await until(newest, 'it is queued'));
    expect((await answer).headers.get('preference-applied')).toBe('wait=60');
  });

  it.each(['wait=0', 'wait=x', 'return=minimal'])('is not applied to %s', async (prefer) => {
    const { status, headers } = await create({ prefer });
    expect([status, headers.get('preference-applied')]).toEqual([201, null]);
  });

  it('means nothing to a Fine-Tune', async () => {
    const { status, headers } = await api.request('POST', '/v1/finetunes', {
      key,
      body: { name: 'robot' },
      headers: { prefer: 'wait=60' },
    });
    expect([status, headers.get('preference-applied')]).toEqual([201, null]);
  });

  it('waits outside of the transaction of an Idempotency-Key, and again when the request is repeated', async () => {
    const headers = { prefer: 'wait=60', 'idempotency-key': 'once' };
    const answer = create(headers);
    const id = await until(newest, 'it is committed');
    const repeated = create(headers);
    await drawTask(api, id);
    const [first, second] = await Promise.all([answer, repeated]);
    expect([first.body.id, first.body.status]).toEqual([id, 'succeeded']);
    expect([second.status, second.body.id, second.body.status]).toEqual([201, id, 'succeeded']);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect((await create({ 'idempotency-key': 'once' })).body).toEqual(first.body);
    expect((await api.request<unknown[]>('GET', path, { key })).body).toHaveLength(1);
  });

  it('is applied to 200 answers of a key at a time, while others of it are served, and other keys wait as before', async () => {
    const waiting: Promise<Reply<GenerationJson>>[] = [];
    const count = async () => (await api.request<unknown[]>('GET', path, { key })).body.length;
    for (let n = 0; n < 200; n++) waiting.push(create({ prefer: 'wait=60' }));
    await until(async () => (await count()) === 200, 'all of them wait');
    const further = await create({ prefer: 'wait=60' });
    expect([further.status, further.headers.get('preference-applied')]).toEqual([201, null]);
    const other = await api.createKey();
    const answer = create({ prefer: 'wait=60' }, { key: other });
    await drawTask(api, await until(() => newest(other), 'it is queued'));
    expect((await answer).body.status).toBe('succeeded');
    const { body } = await api.request<GenerationJson[]>('GET', path, { key });
    for (const { id } of body) await api.request('POST', `${path}/${id}/cancel`, { key });
    for (const each of waiting) expect((await each).body.status).toBe('canceled');
  });

  it('holds nothing for a caller who has gone', async () => {
    const gone = new AbortController();
    const answers = Array.from({ length: 200 }, () =>
      fetch(`${api.baseUrl}${path}`, {
        method: 'POST',
        body: '{"prompt":"x"}',
        headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json', prefer: 'wait=60' },
        signal: gone.signal,
      }),
    );
    const count = async () => (await api.request<unknown[]>('GET', path, { key })).body.length;
    await until(async () => (await count()) === 200, 'all of them wait');
    const isApplied = async () => (await create({ prefer: 'wait=1' })).headers.get('preference-applied') !== null;
    const outcomes = Promise.allSettled(answers);
    await until(async () => !(await isApplied()), 'all places of the key are taken');
    gone.abort();
    expect((await outcomes).map(({ status }) => status)).not.toContain('fulfilled');
    await until(isApplied, 'a place is free');
  });
});

describe('usage', () => {
  const key = ofTest(() => api.createKey());

  const usage = (query = '') => api.request<object[] & ProblemJson>('GET', `/v1/usage${query}`, { key });
  const today = () => new Date().toISOString().slice(0, 10);

  it('is empty for a key that has drawn nothing', async () => {
    expect(await usage()).toMatchObject({ status: 200, body: [] });
  });

  it('counts drawn pictures, but not failed ones or another caller’s', async () => {
    const { id } = await makeFinetune(api, key, { model: 'shapes' });
    const prompts = await makePrompts(api, key, id, [{ prompt: 'robot', steps: 20 }, { prompt: 'robot' }]);
    const generation = (body: object) =>
      api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', ...body } });
    const { body: drawn } = await generation({ num_generations: 3, steps: 10, model: 'sd1.5' });
    const day = today();
    await drawTask(api, prompts[0].id, 1.25);
    await drawTask(api, drawn.id, 0.1);
    await failTask(api, prompts[1].id, 'no');
    const stranger = await api.createKey();
    const [theirs] = await makePrompts(api, stranger, (await makeFinetune(api, stranger)).id);
    await drawTask(api, theirs.id);

    // The test may run across midnight: then there are two days.
    const days =
      day === today() ? [{ day, images: 4, steps: 50, pixels: 4 * 64 ** 2, compute_seconds: 1.35 }] : undefined;
    if (days) expect((await usage()).body).toEqual(days);
    expect((await usage('?group_by=model')).body).toEqual([
      { model: 'sd1.5', images: 3, steps: 30, pixels: 3 * 64 ** 2, compute_seconds: 0.1 },
      { model: 'shapes', images: 1, steps: 20, pixels: 64 ** 2, compute_seconds: 1.25 },
    ]);
    expect((await usage('?group_by=finetune')).body).toEqual([
      { finetune: id, images: 1, steps: 20, pixels: 64 ** 2, compute_seconds: 1.25 },
      { finetune: null, images: 3, steps: 30, pixels: 3 * 64 ** 2, compute_seconds: 0.1 },
    ]);
  });

  it('sums the days of the range, newest first', async () => {
    const row = { ownerId: key.id, model: 'm', finetuneId: '', images: 1, steps: 2, computeSeconds: 0.1 };
    const days = ['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02'];
    await api.dataSource.manager.insert(
      DailyUsage,
      days.map((day) => ({ ...row, day })),
    );
    await api.dataSource.manager.insert(DailyUsage, { ...row, day: '2026-03-01', model: 'n', computeSeconds: 0.2 });
    const between = '?from=2026-02-28&to=2026-03-01';
    expect((await usage(between)).body).toEqual([
      { day: '2026-03-01', images: 2, steps: 4, pixels: 0, compute_seconds: 0.3 },
      { day: '2026-02-28', images: 1, steps: 2, pixels: 0, compute_seconds: 0.1 },
    ]);
    expect((await usage(`${between}&group_by=model`)).body).toEqual([
      { model: 'm', images: 2, steps: 4, pixels: 0, compute_seconds: 0.2 },
      { model: 'n', images: 1, steps: 2, pixels: 0, compute_seconds: 0.2 },
    ]);
  });
});
