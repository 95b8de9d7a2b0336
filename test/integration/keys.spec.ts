import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { get, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { ApiKey, Task, WebhookDelivery, keyChannel, newIdentifier } from '@app/domain';
import { cancelAll } from '@app/tasks';
import { Transactions } from '@app/queue';
import type { INestApplicationContext } from '@nestjs/common';
import { Webhook } from 'standardwebhooks';
import { DataSource } from 'typeorm';
import { startTestApi, type TestKey } from '../support/api';
import { claimTask } from '../support/claim-task';
import { makeFinetune, type ProblemJson } from '../support/factories';
import { until, untilAfter } from '../support/until';
import { createApi } from '../../apps/api/src/create-api';
import { OpenRequests } from '../../apps/api/src/defence/open-requests';
import { RevokedKeys } from '../../apps/api/src/http/revoked-keys';
import { openEvents } from '../support/event-source';
import { receiversOfSuite } from '../support/receiver';
import { manyTasks } from '../support/many-tasks';
import { ofSuite, ofTest } from '../support/of-suite';

interface KeyJson {
  id: string;
  token: string | null;
  webhook_secret: string | null;
  [field: string]: unknown;
}

const api = ofSuite(startTestApi);
const startReceiver = receiversOfSuite();

describe('Keys over HTTP', () => {
  const admin = ofSuite(() => api.createKey({ scopes: ['admin'] }));

  const call = <T = KeyJson & ProblemJson>(method: string, path = '', body?: unknown, headers = {}) =>
    api.request<T>(method, `/v1/keys${path}`, { key: admin, headers, ...(body !== undefined && { body }) });
  const create = async (body: object = {}) => (await call('POST', '', { name: 'shop', ...body })).body;
  const statusOf = async (token: string | null, method = 'GET') =>
    (
      await api.request(method, '/v1/sd/text-to-image', {
        key: { token: token! },
        body: method === 'POST' ? { prompt: 'x' } : undefined,
      })
    ).status;

  it('are made with what they may do and how much', async () => {
    const { status, body } = await call('POST', '', {
      name: 'shop',
      scopes: ['read'],
      sandbox: true,
      rate_limit_per_minute: 60,
      max_queued: 0,
      max_concurrent: 'default',
      retention_days: 30,
      keep_training_uploads: true,
    });
    expect(status).toBe(201);
    const { id, token, webhook_secret, prefix, created_at, ...rest } = body;
    expect(rest).toEqual({
      name: 'shop',
      account: null,
      scopes: ['read'],
      sandbox: true,
      rate_limit_per_minute: 60,
      max_queued: 0,
      max_concurrent: null,
      max_storage_mb: null,
      retention_days: 30,
      keep_training_uploads: true,
      filter: 'off',
      last_used_at: null,
      revoked_at: null,
    });
    expect([token, webhook_secret, created_at]).toEqual([
      expect.stringMatching(new RegExp(`^${String(prefix)}_[\\w-]{43}$`)),
      expect.stringMatching(/^whsec_/),
      expect.stringMatching(/Z$/),
    ]);
    expect([await statusOf(token), await statusOf(token, 'POST')]).toEqual([200, 403]);
    const { secretHash } = await api.dataSource.manager.findOneByOrFail(ApiKey, { id });
    expect(secretHash.toString()).not.toContain(token!.slice(-43));
  });

  it('may write and read, where nothing else is said', async () => {
    const { token, scopes } = await create();
    expect([scopes, await statusOf(token), await statusOf(token, 'POST')]).toEqual([['write'], 200, 201]);
  });

  it('have an address at which they are read without secrets', async () => {
    const { headers, body } = await call('POST', '', { name: 'shop' });
    expect(headers.get('location')).toMatch(new RegExp(`/v1/keys/${body.id}$`));
    const { token: _, webhook_secret: __, ...shown } = body;
    expect((await call('GET', `/${body.id}`)).body).toEqual(shown);
    const unknown = await call('GET', `/${newIdentifier()}`);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'KeyNotFound']);
  });

  it('change their name and limits, and nothing that is left out or null', async () => {
    const {
      id,
      token: _token,
      webhook_secret: _secret,
      ...before
    } = await create({ max_queued: 5, retention_days: 7 });
    const changed = await call('PATCH', `/${id}`, { name: 'store', max_queued: 'default', max_concurrent: 2 });
    expect([changed.status, changed.body]).toEqual([
      200,
      { id, ...before, name: 'store', max_queued: null, max_concurrent: 2 },
    ]);
    const kept = { retention_days: 'keep', keep_training_uploads: true };
    expect((await call('PATCH', `/${id}`, { max_concurrent: null, ...kept })).body).toEqual({
      ...changed.body,
      retention_days: null,
      keep_training_uploads: true,
    });
  });

  it('filter pictures only where a safety checker is installed', async () => {
    const { id } = await create();
    const problem = { pointer: '/filter', message: 'needs a safety checker, and none is installed that can be used' };
    const refused = await call('PATCH', `/${id}`, { filter: 'block' });
    expect([refused.status, refused.body]).toMatchObject([422, { code: 'SafetyNotInstalled', errors: [problem] }]);
    expect((await call('POST', '', { name: 'shop', filter: 'report' })).status).toBe(422);
    expect(await call('PATCH', `/${id}`, { filter: 'blur' })).toMatchObject({ status: 400 });
    expect((await call('PATCH', `/${id}`, { filter: 'off' })).body).toMatchObject({ id, filter: 'off' });
  });

  it('get a new token, beside which the previous one is valid for a while', async () => {
    const { id, token } = await create();
    // The key is cached from then on.
    expect(await statusOf(token)).toBe(200);
    const { status, body } = await call('POST', `/${id}/rotate`, { grace_hours: 1 });
    expect(status).toBe(201);
    const left = Date.parse(String(body.previous_token_expires_at)) - Date.now();
    expect([left > 3_500_000, left <= 3_600_000]).toEqual([true, true]);
    expect([await statusOf(token), await statusOf(body.token)]).toEqual([200, 200]);
    const once = { 'idempotency-key': 'rotate-once' };
    const again = await call('POST', `/${id}/rotate`, { grace_hours: 0 }, once);
    expect([await statusOf(body.token), await statusOf(again.body.token)]).toEqual([401, 200]);
    const day = await call('POST', `/${id}/rotate`);
    expect(Date.parse(String(day.body.previous_token_expires_at)) - Date.now()).toBeGreaterThan(23 * 3_600_000);
  });

  it('get a new secret for their webhooks, beside which the previous one signs for a while', async () => {
    const { id, webhook_secret: first } = await create();
    const { status, body } = await call('POST', `/${id}/rotate-webhook-secret`, { grace_hours: 1 });
    expect([status, body.webhook_secret]).toEqual([201, expect.stringMatching(/^whsec_/)]);
    const row = await api.dataSource.manager.findOneByOrFail(ApiKey, { id });
    expect(row.signingSecrets()).toEqual([body.webhook_secret, first]);
    expect(row.previousWebhookSecretExpiresAt?.toISOString()).toBe(body.previous_webhook_secret_expires_at);
  });

  it('keep their name as it was sent', async () => {
    const { id, name } = await create({ name: ' web shop ' });
    const renamed = await call('PATCH', `/${id}`, { name: 'shop\u00a0' });
    expect([name, renamed.body.name]).toEqual([' web shop ', 'shop\u00a0']);
  });

  it('are revoked, with all that waits for them', async () => {
    const { id, token } = await create();
    const { token: newer } = (await call('POST', `/${id}/rotate`)).body;
    expect(await statusOf(token, 'POST')).toBe(201);
    const { status, body } = await call<{ delete: string }>('DELETE', `/${id}`);
    expect([status, body]).toEqual([200, { delete: `Key ${id} has been deleted successfully.` }]);
    expect(await statusOf(token, 'POST')).toBe(401);
    expect([await statusOf(token), await statusOf(newer)]).toEqual([401, 401]);
    await until(async () => {
      const open = await api.dataSource.query<unknown[]>(
        `SELECT FROM tasks WHERE owner_id = $1 AND status = 'queued'`,
        [id],
      );
      return open.length === 0;
    }, 'its tasks are canceled');
    const { body: list } = await call<KeyJson[]>('GET', '?limit=1');
    expect(list[0]).toMatchObject({ id, revoked_at: expect.any(String) as string });
    expect((await call('DELETE', `/${id}`)).status).toBe(200);
    for (const [method, path, change] of [
      ['POST', '/rotate', {}],
      ['POST', '/rotate-webhook-secret', {}],
      ['PATCH', '', { max_queued: 7 }],
    ] as const) {
      const refused = await call(method, `/${id}${path}`, change);
      expect([refused.status, refused.body.code]).toEqual([409, 'KeyRevoked']);
    }
  });

  it('do not revoke themselves, so that one is always left', async () => {
    const { status, body } = await call('DELETE', `/${admin.id}`);
    expect([status, body.code]).toEqual([409, 'KeyInUse']);
    expect((await call('GET')).status).toBe(200);
  });

  it('keep no secret in a reply that is stored under an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'a-key' };
    const first = await call('POST', '', { name: 'once' }, headers);
    const second = await call('POST', '', { name: 'once' }, headers);
    expect(second.body).toEqual({ ...first.body, token: null, webhook_secret: null });
    const rotation = { 'idempotency-key': 'a-rotation' };
    const rotated = await call('POST', `/${first.body.id}/rotate`, {}, rotation);
    expect((await call('POST', `/${first.body.id}/rotate`, {}, rotation)).body).toEqual({
      ...rotated.body,
      token: null,
    });
    const rows = await api.dataSource.query<{ body: string }[]>(
      'SELECT body FROM idempotent_replies WHERE owner_id = $1',
      [admin.id],
    );
    for (const { body } of rows)
      for (const secret of [first.body.token!, rotated.body.token!]) expect(body).not.toContain(secret);
  });
});

describe('Revoking an API key', () => {
  const key = ofTest(() => api.createKey());

  const revoke = ({ told = true, of = key, at = api } = {}) =>
    at.dataSource.query(
      `WITH revoked AS (UPDATE api_keys SET revoked_at = now() WHERE id = $1 RETURNING id)
       SELECT pg_notify($2, id) FROM revoked WHERE $3`,
      [of.id, keyChannel, told],
    );
  const make = async (body: object = {}): Promise<string> =>
    (await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star', ...body } }))
      .body.id;
  const statusOf = async (id: string) => (await api.dataSource.manager.findOneByOrFail(Task, { id })).status;
  /** Makes a process check its keys only when told to. */
  const checkOnlyWhenTold = async (app: INestApplicationContext): Promise<void> => {
    type Loop = { stop: () => Promise<void>; wake: () => void; poll: () => Promise<boolean> };
    const { loops } = app.get<unknown>(RevokedKeys) as { loops: readonly Loop[] };
    await Promise.all(loops.map((loop) => loop.stop()));
    for (const loop of loops) loop.wake = () => void loop.poll().catch(() => undefined);
  };

  it.each([
    ['when it is told', true],
    ['also where no notification came', false],
  ])('ends its event streams %s, in every api process', async (_, told) => {
    const first = await startTestApi();
    const other = await createApi(first.config);
    try {
      await other.listen(0, '127.0.0.1');
      // The periodic checks would hide a notification that is not received.
      if (told) await Promise.all([first.app, other].map(checkOnlyWhenTold));
      const caller = await first.createKey();
      const { body } = await first.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
        key: caller,
        body: { prompt: 'a star' },
      });
      const streams = await Promise.all(
        [first.baseUrl, await other.getUrl()].map((url) =>
          openEvents(`${url}/v1/sd/text-to-image/${body.id}/events`, caller.token),
        ),
      );
      for (const stream of streams) expect(await stream.next()).toMatchObject({ event: 'queued' });
      await revoke({ told, of: caller, at: first });
      let ended = 0;
      for (const stream of streams)
        void (async () => {
          for (let event = await stream.next(); event; event = await stream.next());
          ended++;
        })();
      await until(async () => ended === streams.length, 'all streams have ended', 30_000);
    } finally {
      await other.close();
      await first.close();
    }
  });

  it('stops writes at once, even if the key is cached, and reads within a second', async () => {
    const ask = (method: 'GET' | 'POST', path: string, body?: object) => api.request(method, path, { key, body });
    const finetune = await makeFinetune(api, key);
    await make();
    expect((await ask('GET', '/v1/finetunes')).status).toBe(200);
    await revoke({ told: false });
    const replies = await Promise.all([
      ask('POST', '/v1/sd/text-to-image', { prompt: 'a moon' }),
      ask('POST', `/v1/finetunes/${finetune.id}/prompts`, [{ prompt: 'an ohwx robot' }]),
      ask('POST', '/v1/prompts/collections', { name: 'moons', styles: [] }),
    ]);
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401]);
    expect(await api.dataSource.manager.countBy(Task, { ownerId: key.id })).toBe(1);
    await untilAfter(1_000, async () => (await ask('GET', '/v1/finetunes')).status === 401, 'the key is refused');
  });

  it('leaves the streams of others alone', async () => {
    const other = await api.createKey();
    const { body } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
      key: other,
      body: { prompt: 'a star' },
    });
    const stream = await openEvents(`${api.baseUrl}/v1/sd/text-to-image/${body.id}/events`, other.token);
    const id = await make();
    await revoke();
    await until(async () => (await statusOf(id)) === 'canceled', 'the tasks of the revoked key are canceled');
    await api.request('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key: other });
    let last = await stream.next();
    while (last?.event === 'queued') last = await stream.next();
    expect(last).toMatchObject({ event: 'terminated' });
  });

  it('cuts off a running list', async () => {
    await api.dataSource.query(
      `WITH ${manyTasks(2000, { id: `$1 || lpad(i::text, 4, '0')`, owner: '$2', status: `'succeeded'` })}
       INSERT INTO generations (id, owner_id, metadata)
       SELECT $1 || lpad(i::text, 4, '0'), $2, json_build_object('text', repeat('x', 15000))
       FROM generate_series(1, 2000) AS i`,
      [key.id.slice(0, 20), key.id],
    );
    const headers = { authorization: `Bearer ${key.token}` };
    const response = await new Promise<IncomingMessage>((resolve) =>
      get(`${api.baseUrl}/v1/sd/text-to-image`, { headers }, resolve),
    );
    const ended = once(response, 'error');
    await revoke();
    await until(async () => (await api.request('GET', '/v1/finetunes', { key })).status === 401, 'the key is refused');
    response.resume();
    expect(((await ended) as [Error])[0].message).toBe('aborted');
  });

  it('answers a request that waits for its picture with the record', async () => {
    const waiting = api.request<{ id: string; status: string }>('POST', '/v1/sd/text-to-image', {
      key,
      headers: { prefer: 'wait=60' },
      body: { prompt: 'a star' },
    });
    const { manager } = api.dataSource;
    await until(async () => (await manager.countBy(Task, { ownerId: key.id })) === 1, 'the Generation is stored');
    await until(async () => api.app.get(OpenRequests).owners().includes(key.id), 'it waits');
    await revoke();
    const { status, body, headers } = await waiting;
    expect(status).toBe(201);
    // Where its tasks are canceled before its requests are ended, it is answered as any other.
    if (body.status === 'queued') expect(headers.get('connection')).toBe('close');
    expect(['queued', 'canceled']).toContain(body.status);
    await until(async () => (await statusOf(body.id)) === 'canceled', 'it is canceled');
  });

  it('answers an upload with 401 and stops it', async () => {
    const { id } = await makeFinetune(api, key, { model: 'shapes' });
    const upload = request(`${api.baseUrl}/v1/finetunes/${id}/weights`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/octet-stream' },
    });
    upload.on('error', () => undefined);
    const answered = once(upload, 'response') as Promise<[IncomingMessage]>;
    const trickle = setInterval(() => upload.write('x'), 20);
    try {
      const uploads = join(api.config.dataDir, 'uploads');
      await until(async () => (await readdir(uploads).catch(() => [])).length === 1, 'the upload has begun');
      await revoke();
      const [response] = await answered;
      expect([response.statusCode, response.headers['content-type']]).toEqual([
        401,
        'application/problem+json; charset=utf-8',
      ]);
      response.resume();
      upload.destroy();
      await until(async () => (await readdir(uploads)).length === 0, 'the upload is removed');
    } finally {
      clearInterval(trickle);
      upload.destroy();
    }
  });

  it('cancels what it has waiting or being drawn, and sends the webhooks', async () => {
    const receiver = await startReceiver();
    const ids = [];
    for (let n = 0; n < 3; n++) ids.push(await make({ webhook: receiver.url }));
    await claimTask(api.dataSource.manager, ids[0]);
    await revoke();
    for (const id of ids) await until(async () => (await statusOf(id)) === 'canceled', 'it is canceled');
    await receiver.next(3);
    const told = receiver.received.map(({ body }) => JSON.parse(body) as { id: string; status: string });
    expect(new Set(told.map(({ id }) => id))).toEqual(new Set(ids));
    for (const { status } of told) expect(status).toBe('canceled');
  });
});

describe(cancelAll.name, () => {
  const makeTasks = (ownerId: string, count: number, createdAt = new Date()) =>
    api.dataSource.query(
      `WITH ${manyTasks('$2', { id: 'left(md5(random()::text), 24)', kind: `'prompt'`, owner: '$1', createdAt: '$3' })}
       SELECT`,
      [ownerId, count, createdAt],
    );

  it('ends although the owner keeps making tasks', async () => {
    const { id: ownerId } = await api.createKey();
    await makeTasks(ownerId, 3);
    await makeTasks(ownerId, 1, new Date(Date.now() + 60_000));
    expect(await cancelAll(api.app.get(Transactions), ownerId)).toBe(3);
    expect(await api.dataSource.manager.countBy(Task, { ownerId, status: 'queued' })).toBe(1);
  });

  it('waits last for a task that another transaction has locked', async () => {
    const { id: ownerId } = await api.createKey();
    await makeTasks(ownerId, 150);
    const { manager } = api.dataSource;
    const other = api.dataSource.createQueryRunner();
    await other.startTransaction();
    try {
      await other.query('SELECT FROM tasks WHERE owner_id = $1 ORDER BY id LIMIT 1 FOR UPDATE', [ownerId]);
      const canceling = cancelAll(api.app.get(Transactions), ownerId);
      const left = () => manager.countBy(Task, { ownerId, status: 'queued' });
      await until(async () => (await left()) === 1, 'all others are canceled');
      await other.commitTransaction();
      expect(await canceling).toBe(150);
      expect(await left()).toBe(0);
    } finally {
      if (other.isTransactionActive) await other.rollbackTransaction();
      await other.release();
    }
  });

  it('cancels in batches and sends each webhook once, even if another process cancels too', async () => {
    const key = await api.createKey();
    const other = await api.createKey();
    for (const { id: ownerId } of [key, other]) {
      await api.dataSource.query(
        `WITH ${manyTasks(250, {
          id: `$1 || lpad(i::text, 4, '0')`,
          owner: '$2',
          status: `CASE WHEN i = 1 THEN 'succeeded' ELSE 'queued' END`,
        })}
         INSERT INTO generations (id, owner_id, webhook)
         SELECT $1 || lpad(i::text, 4, '0'), $2, CASE WHEN i % 2 = 0 THEN 'http://127.0.0.1:1/' END
         FROM generate_series(1, 250) AS i`,
        [ownerId.slice(0, 20), ownerId],
      );
    }
    const transactions = api.app.get(Transactions);
    const counts = await Promise.all([cancelAll(transactions, key.id), cancelAll(transactions, key.id)]);
    expect(counts[0] + counts[1]).toBe(249);
    const { manager } = api.app.get(DataSource);
    expect(await manager.countBy(Task, { ownerId: key.id, status: 'canceled' })).toBe(249);
    expect(await manager.countBy(Task, { ownerId: other.id, status: 'queued' })).toBe(249);
    expect(await manager.countBy(WebhookDelivery, { ownerId: key.id })).toBe(125);
  });
});

describe('API keys', () => {
  const statusOf = async (method: string, path: string, key: Pick<TestKey, 'token'>): Promise<unknown> => {
    const { status, body } = await api.request<{ code?: string }>(method, path, {
      key,
      ...(method === 'POST' && { body: {} }),
    });
    return status === 403 ? body.code : status;
  };
  const rowOf = (key: TestKey): Promise<ApiKey> => api.dataSource.manager.findOneByOrFail(ApiKey, { id: key.id });
  const inHours = (hours: number): Date => new Date(Date.now() + hours * 3_600_000);

  it.each(['shop\x1b[2J', 'shop\x9b2J', 'a\nb', 'a\x7f'])('has no control character in its name: %j', async (name) => {
    const key = await api.createKey({ scopes: ['admin'] });
    const made = await api.request<{ code: string }>('POST', '/v1/keys', { key, body: { name } });
    const renamed = await api.request<{ code: string }>('PATCH', `/v1/keys/${key.id}`, { key, body: { name } });
    expect([made, renamed].map(({ status, body }) => [status, body.code])).toEqual([
      [400, 'ValidationFailed'],
      [400, 'ValidationFailed'],
    ]);
  });

  describe('scopes', () => {
    it.each([
      [[], 'ScopeMissing', 'ScopeMissing'],
      [['read'], 200, 'ScopeMissing'],
      [['write'], 200, 400],
      [['read', 'write'], 200, 400],
      [['admin'], 200, 400],
    ] as const)('%j: a GET returns %s, a POST %s', async (scopes, get, post) => {
      const key = await api.createKey({ scopes: [...scopes] });
      expect(await statusOf('GET', '/v1/sd/text-to-image', key)).toBe(get);
      expect(await statusOf('POST', '/v1/sd/text-to-image', key)).toBe(post);
    });

    it('are named by the refusal, with what its caller can do', async () => {
      const key = await api.createKey({ scopes: ['read'] });
      const { body } = await api.request<{ detail: string }>('POST', '/v1/finetunes', { key, body: {} });
      expect(body.detail).toMatch(/needs the scope "write", .* Use a key that has it/);
    });

    it('let a read-only key change nothing', async () => {
      const key = await api.createKey({ scopes: ['read'] });
      for (const [method, path] of [
        ['DELETE', '/v1/sd/text-to-image/none'],
        ['POST', '/v1/sd/text-to-image/none/cancel'],
        ['POST', '/v1/finetunes'],
        ['PUT', '/v1/finetunes/none/weights'],
        ['POST', '/v1/prompts/collections'],
      ])
        expect(await statusOf(method, path, key)).toBe('ScopeMissing');
    });
  });

  describe('rotated', () => {
    it('have the same records, and keep the old one valid for the grace period', async () => {
      const old = await api.createKey();
      const row = await rowOf(old);
      const token = row.rotateSecret(inHours(24));
      await api.dataSource.manager.save(row);
      const made = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
        key: old,
        body: { prompt: 'a star' },
      });
      expect(await statusOf('GET', `/v1/sd/text-to-image/${made.body.id}`, { token })).toBe(200);
      await api.dataSource.manager.update(ApiKey, { id: old.id }, { previousSecretExpiresAt: inHours(-0.001) });
      // A key that was read within the last second is not read again for requests that change nothing.
      await untilAfter(
        1_000,
        async () => (await statusOf('GET', '/v1/finetunes', old)) === 401,
        'the old secret is refused',
      );
      expect(await statusOf('GET', '/v1/finetunes', { token })).toBe(200);
    });

    it('of the webhook secret signs with both until the grace period ends', async () => {
      const receiver = await startReceiver();
      const key = await api.createKey();
      const row = await rowOf(key);
      row.rotateWebhookSecret(inHours(24));
      await api.dataSource.manager.save(row);
      const canceled = async (): Promise<void> => {
        const body = { prompt: 'a star', webhook: receiver.url };
        const made = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
        await api.request('POST', `/v1/sd/text-to-image/${made.body.id}/cancel`, { key });
      };
      await canceled();
      const during = await receiver.next(1);
      for (const secret of [key.webhookSecret, row.webhookSecret])
        expect(() => new Webhook(secret).verify(during.body, during.headers as Record<string, string>)).not.toThrow();
      await api.dataSource.manager.update(ApiKey, { id: key.id }, { previousWebhookSecretExpiresAt: inHours(-0.001) });
      await canceled();
      const after = await receiver.next(2);
      const verify = (secret: string) => () =>
        new Webhook(secret).verify(after.body, after.headers as Record<string, string>);
      expect(verify(key.webhookSecret)).toThrow();
      expect(verify(row.webhookSecret)).not.toThrow();
    });
  });

  it('record when they were last used', async () => {
    const key = await api.createKey();
    expect((await rowOf(key)).lastUsedAt).toBeNull();
    const before = Date.now();
    await statusOf('GET', '/v1/finetunes', key);
    expect((await rowOf(key)).lastUsedAt?.getTime()).toBeGreaterThanOrEqual(before);
  });
});
