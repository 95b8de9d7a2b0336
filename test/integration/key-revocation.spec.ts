import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { get, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { ImageTask, keyChannel, WebhookDelivery } from '@app/domain';
import { cancelAll, ImageTaskLifeCycle } from '@app/tasks';
import type { Recurring } from '@app/process';
import { Transactions } from '@app/queue';
import type { INestApplicationContext } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { createApi } from '../../apps/api/src/create-api';
import { OpenRequests } from '../../apps/api/src/defence/open-requests';
import { RevokedKeys } from '../../apps/api/src/http/revoked-keys';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { openEvents } from '../support/event-source';
import { makeFinetune } from '../support/factories';
import { startReceiver } from '../support/receiver';
import { until, untilAfter } from '../support/until';

describe('Revoking an API key', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
  });
  afterAll(() => api.close());

  const revoke = ({ told = true, of = key, at = api } = {}) =>
    at.dataSource.query(
      `WITH revoked AS (UPDATE api_keys SET revoked_at = now() WHERE id = $1 RETURNING id)
       SELECT pg_notify($2, id) FROM revoked WHERE $3`,
      [of.id, keyChannel, told],
    );
  const make = async (body: object = {}): Promise<string> =>
    (await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star', ...body } }))
      .body.id;
  const statusOf = async (id: string) => (await api.dataSource.manager.findOneByOrFail(ImageTask, { id })).status;
  /** Makes a process check its keys only when told to. */
  const checkOnlyWhenTold = async (app: INestApplicationContext): Promise<void> => {
    const { rounds } = app.get<unknown>(RevokedKeys) as { rounds: readonly Recurring[] };
    await Promise.all(rounds.map((each) => each.stop()));
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
    expect(await api.dataSource.manager.countBy(ImageTask, { ownerId: key.id })).toBe(1);
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
      `WITH tasks AS (
         INSERT INTO image_tasks (id, kind, owner_id, prompt, cfg, steps, seed, model, aspect_ratio, high_resolution,
           num_images, status, created_at)
         SELECT $1 || lpad(i::text, 4, '0'), 'generation', $2, 'a star', 7.5, 30, i, 'shapes', 'square', false, 1,
           'succeeded', now() FROM generate_series(1, 2000) AS i
       )
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
    await until(async () => (await manager.countBy(ImageTask, { ownerId: key.id })) === 1, 'the Generation is stored');
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
    } finally {
      clearInterval(trickle);
      upload.destroy();
    }
  });

  it('cancels what it has waiting or being drawn, and sends the webhooks', async () => {
    const receiver = await startReceiver();
    try {
      const ids = [];
      for (let n = 0; n < 3; n++) ids.push(await make({ webhook: receiver.url }));
      const claim = await api.app.get(ImageTaskLifeCycle).claim(ids[0]);
      expect(claim.kind).toBe('claimed');
      await revoke();
      for (const id of ids) await until(async () => (await statusOf(id)) === 'canceled', 'it is canceled');
      await receiver.next(3);
      const told = receiver.received.map(({ body }) => JSON.parse(body) as { id: string; status: string });
      expect(new Set(told.map(({ id }) => id))).toEqual(new Set(ids));
      for (const { status } of told) expect(status).toBe('canceled');
    } finally {
      await receiver.close();
    }
  });
});

describe(cancelAll.name, () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startTestApi();
  });
  afterAll(() => api.close());

  const makeTasks = (ownerId: string, count: number, createdAt = new Date()) =>
    api.dataSource.query(
      `INSERT INTO image_tasks (id, kind, owner_id, prompt, cfg, steps, seed, model, aspect_ratio, high_resolution,
         num_images, status, created_at)
       SELECT left(md5(random()::text), 24), 'prompt', $1, 'a star', 7.5, 30, i, 'shapes', 'square', false, 1, 'queued', $3
       FROM generate_series(1, $2) AS i`,
      [ownerId, count, createdAt],
    );

  it('ends although the owner keeps making tasks', async () => {
    const { id: ownerId } = await api.createKey();
    await makeTasks(ownerId, 3);
    await makeTasks(ownerId, 1, new Date(Date.now() + 60_000));
    expect(await cancelAll(api.app.get(Transactions), ownerId)).toBe(3);
    expect(await api.dataSource.manager.countBy(ImageTask, { ownerId, status: 'queued' })).toBe(1);
  });

  it('waits last for a task that another transaction has locked', async () => {
    const { id: ownerId } = await api.createKey();
    await makeTasks(ownerId, 150);
    const { manager } = api.dataSource;
    const other = api.dataSource.createQueryRunner();
    await other.startTransaction();
    try {
      await other.query('SELECT FROM image_tasks WHERE owner_id = $1 ORDER BY id LIMIT 1 FOR UPDATE', [ownerId]);
      const canceling = cancelAll(api.app.get(Transactions), ownerId);
      const left = () => manager.countBy(ImageTask, { ownerId, status: 'queued' });
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
        `WITH tasks AS (
           INSERT INTO image_tasks (id, kind, owner_id, prompt, cfg, steps, seed, model, aspect_ratio, high_resolution,
             num_images, status, created_at)
           SELECT $1 || lpad(i::text, 4, '0'), 'generation', $2, 'a star', 7.5, 30, i, 'shapes', 'square', false, 1,
             CASE WHEN i = 1 THEN 'succeeded' ELSE 'queued' END, now() FROM generate_series(1, 250) AS i
         )
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
    expect(await manager.countBy(ImageTask, { ownerId: key.id, status: 'canceled' })).toBe(249);
    expect(await manager.countBy(ImageTask, { ownerId: other.id, status: 'queued' })).toBe(249);
    expect(await manager.countBy(WebhookDelivery, { ownerId: key.id })).toBe(125);
  });
});
