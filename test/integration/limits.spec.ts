import { startTestApi, type TestApi, type TestKey } from '../support/api';
import { failTask } from '../support/factories';

describe('Limits', () => {
  const apis: TestApi[] = [];
  let api: TestApi;

  /** An api. The second one, on the same database, counts as another process. */
  const start = async (env: Record<string, string> = {}): Promise<TestApi> => {
    const started = await startTestApi(env);
    apis.push(started);
    return started;
  };

  beforeAll(async () => {
    api = await start({ RATE_LIMIT_PER_MINUTE: '20', MAX_QUEUED_PER_KEY: '5' });
  });

  afterAll(async () => {
    for (const each of apis.reverse()) await each.close();
  });

  const draw = (key: TestKey, target = api) =>
    target.request<{ id: string; code?: string; detail?: string }>('POST', '/v1/sd/text-to-image', {
      key,
      body: { prompt: 'a star' },
    });
  const list = (key: TestKey, target = api) => target.request<{ code: string }>('GET', '/v1/finetunes', { key });

  describe('of the request rate', () => {
    it('are sent with every response', async () => {
      const key = await api.createKey();
      const { headers, status } = await list(key);
      expect(status).toBe(200);
      expect(headers.get('ratelimit-limit')).toBe('20');
      expect(headers.get('ratelimit-remaining')).toBe('19');
      expect(headers.get('ratelimit-reset')).toBe('3');
      // With a limit of 2 per minute a token returns only after half a minute, so not between these requests.
      const slow = await api.createKey({ rateLimitPerMinute: 2 });
      expect((await list(slow)).headers.get('ratelimit-remaining')).toBe('1');
      const missing = await api.request('GET', '/v1/sd/text-to-image/none', { key: slow });
      expect([missing.status, missing.headers.get('ratelimit-remaining')]).toEqual([404, '0']);
    });

    it('accept a minute’s requests at once and reject the next', async () => {
      const key = await api.createKey();
      const startedAt = performance.now();
      const replies = await Promise.all(Array.from({ length: 30 }, () => list(key)));
      const elapsedMs = performance.now() - startedAt;
      const refused = replies.filter(({ status }) => status === 429);
      // One token is added every three seconds.
      expect(replies.length - refused.length).toBeGreaterThanOrEqual(20);
      expect(replies.length - refused.length).toBeLessThanOrEqual(20 + Math.ceil(elapsedMs / 3_000));
      const { body, headers } = refused[0];
      expect(body.code).toBe('RateLimited');
      expect(headers.get('content-type')).toContain('application/problem+json');
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(3);
      expect(headers.get('ratelimit-remaining')).toBe('0');
      expect((await list(await api.createKey())).status).toBe(200);
    });

    it('refill with time', async () => {
      // One token is added every twenty seconds.
      const key = await api.createKey({ rateLimitPerMinute: 3 });
      for (let n = 0; n < 3; n++) expect((await list(key)).status).toBe(200);
      expect((await list(key)).status).toBe(429);
      await api.dataSource.query(
        `UPDATE rate_buckets SET updated_at = updated_at - interval '60 s' WHERE owner_id = $1`,
        [key.id],
      );
      const replies = [await list(key), await list(key), await list(key)];
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
    });

    it('are shared by all api processes', async () => {
      const other = await start({
        ...api.backEnds.env,
        DATABASE_URL: api.config.databaseUrl ?? '',
        RATE_LIMIT_PER_MINUTE: '20',
      });
      // One token is added every fifteen seconds.
      const key = await api.createKey({ rateLimitPerMinute: 4 });
      await Promise.all([list(key), list(key, other), list(key), list(key, other)]);
      const [here, there] = [await list(key), await list(key, other)];
      expect([here.status, there.status]).toContain(429);
      expect(Number(there.headers.get('ratelimit-remaining'))).toBe(0);
    });

    it('are the key’s own if it has them, and unlimited at 0', async () => {
      const tight = await api.createKey({ rateLimitPerMinute: 2 });
      const statuses = [await list(tight), await list(tight), await list(tight)].map(({ status }) => status);
      expect(statuses).toEqual([200, 200, 429]);
      const free = await api.createKey({ rateLimitPerMinute: 0 });
      const replies = await Promise.all(Array.from({ length: 30 }, () => list(free)));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
      expect(replies[0].headers.get('ratelimit-limit')).toBeNull();
    });

    it('do not count requests without a key, which are rejected before', async () => {
      const { status, headers } = await list({ id: '', token: 'dr_x', webhookSecret: '' });
      expect([status, headers.get('ratelimit-limit')]).toEqual([401, null]);
    });
  });

  describe('of the queue', () => {
    it('reject tasks above the limit, however many come at once, and accept more when there is room', async () => {
      const key = await api.createKey({ rateLimitPerMinute: 0 });
      const replies = await Promise.all(Array.from({ length: 20 }, () => draw(key)));
      const accepted = replies.filter(({ status }) => status === 201);
      expect(accepted).toHaveLength(5);
      const refused = replies.find(({ status }) => status !== 201);
      expect(refused).toMatchObject({ status: 429, body: { code: 'QueueFull' } });
      expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      await failTask(api, accepted[0].body.id, 'It was a test.');
      expect((await draw(key)).status).toBe(201);
      expect((await draw(key)).status).toBe(429);
      expect((await draw(await api.createKey())).status).toBe(201);
    });

    it('accept all Prompts of a request or none', async () => {
      const key = await api.createKey({ rateLimitPerMinute: 0, maxQueued: 3 });
      const finetune = await api.request<{ id: string }>('POST', '/v1/finetunes', { key, body: { name: 'robot' } });
      const path = `/v1/finetunes/${finetune.body.id}/prompts`;
      const ask = (count: number) =>
        api.request('POST', path, { key, body: Array.from({ length: count }, () => ({ prompt: 'a robot' })) });
      expect((await ask(2)).status).toBe(201);
      expect(await ask(2)).toMatchObject({ status: 429, body: { code: 'QueueFull' } });
      // More than may ever wait will never succeed, so it is not to be tried again.
      expect(await ask(4)).toMatchObject({ status: 422, body: { code: 'TooManyPrompts' } });
      expect((await api.request('GET', path, { key })).body).toHaveLength(2);
      expect((await ask(1)).status).toBe(201);
    });

    it('allow a rejected request to be repeated under its Idempotency-Key', async () => {
      const key = await api.createKey({ rateLimitPerMinute: 0, maxQueued: 1 });
      const first = await draw(key);
      const again = () =>
        api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
          key,
          body: { prompt: 'a moon' },
          headers: { 'idempotency-key': 'moon' },
        });
      expect((await again()).status).toBe(429);
      await failTask(api, first.body.id, 'It was a test.');
      const made = await again();
      expect(made.status).toBe(201);
      expect((await again()).body.id).toBe(made.body.id);
    });
  });
});
