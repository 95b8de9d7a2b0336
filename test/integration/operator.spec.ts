import { type EngineReport, newIdentifier, Task } from '@app/domain';
import type { FailureDto, KeyDeliveryDto, QueueDto, StorageDto, WorkerDto } from '@app/domain/http';
import { LiveWorkers } from '@app/tasks';
import { type Reply, startTestApi, type TestKey } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import { drawTask, failTask } from '../support/factories';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

const secret = 'a prompt that is nobody else’s';

describe('What an operator sees', () => {
  const api = ofSuite(startTestApi);
  const admin = ofSuite(() => api.createKey({ scopes: ['admin'], name: 'operator' }));
  let shop: TestKey;

  beforeEach(async () => {
    await api.dataSource.query('TRUNCATE tasks, storage_use, inference_workers CASCADE');
    shop = await api.createKey({ name: 'shop' });
  });
  const receiver = receiversOfSuite();

  const read = async <T>(path: string) => (await api.request<T>('GET', path, { key: admin })).body;
  const draw = async (body: object = {}, key = shop): Promise<string> =>
    (await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: secret, ...body } })).body
      .id;

  it('is for the scope admin alone, as is the management of keys', async () => {
    const lists = ['queue', 'workers', 'storage', 'failures', 'deliveries', 'keys'].map((name) => `/v1/${name}`);
    for (const scopes of [['read'], ['write'], ['read', 'write']] as const) {
      const key = await api.createKey({ scopes: [...scopes] });
      const ofKey = `/v1/keys/${key.id}`;
      for (const [method, path] of [
        ...[...lists, `${ofKey}/usage`].map((path) => ['GET', path]),
        ...['/v1/keys', `${ofKey}/rotate`, `/v1/deliveries/${newIdentifier()}/redeliver`].map((path) => ['POST', path]),
        ...['PATCH', 'DELETE'].map((method) => [method, ofKey]),
      ]) {
        const { status, body } = await api.request(method, path, { key });
        expect([method, path, status, body.code]).toEqual([method, path, 403, 'ScopeMissing']);
      }
    }
  });

  it('is empty at first', async () => {
    expect(await read('/v1/queue')).toEqual({ queued: 0, processing: 0, deliveries_due: 0, waiting: [], drawing: [] });
    expect(await read('/v1/workers')).toEqual([]);
    expect(await read('/v1/failures')).toEqual([]);
    expect(await read('/v1/deliveries')).toEqual([]);
    expect(await read('/v1/storage')).toEqual({
      picture_bytes: 0,
      weight_bytes: 0,
      record_bytes: 0,
      upload_bytes: 0,
      disk_free_bytes: expect.any(Number) as number,
      disk_total_bytes: expect.any(Number) as number,
      keys: [],
    });
  });

  it('has what waits by key and model, and what is drawn, without the prompts', async () => {
    const oldest = await draw();
    await draw();
    await draw({ model: 'shapes', num_generations: 2, steps: 7 }, admin);
    await draw({}, await api.createKey({ sandbox: true }));
    const first = await read<QueueDto>('/v1/queue');
    expect(first).toMatchObject({ queued: 3, processing: 0, drawing: [] });
    expect(first.waiting.map(({ key_id, key_name, model, queued }) => [key_id, key_name, model, queued])).toEqual([
      [shop.id, 'shop', 'sd1.5', 2],
      [admin.id, 'operator', 'shapes', 1],
    ]);
    await api.dataSource.query(
      `UPDATE tasks SET status = 'processing', attempt = 2, started_at = now() - interval '1 hour',
         claimed_at = '2026-03-01T12:00:00Z', heartbeat_at = now() WHERE id = $1`,
      [oldest],
    );
    const then = await api.request<QueueDto>('GET', '/v1/queue', { key: admin });
    expect(then.body).toMatchObject({ queued: 2, processing: 1 });
    expect(then.body.drawing).toEqual([
      {
        id: oldest,
        kind: 'generation',
        key_id: shop.id,
        key_name: 'shop',
        model: 'sd1.5',
        pictures: 1,
        steps: bundledDefaults.steps,
        attempt: 2,
        drawn_since: '2026-03-01T12:00:00.000Z',
      },
    ]);
    expect(then.text).not.toContain(secret);
    // Its worker dies: until another takes it, it waits.
    await api.dataSource.query(`UPDATE tasks SET heartbeat_at = now() - interval '11 s' WHERE id = $1`, [oldest]);
    const left = await read<QueueDto>('/v1/queue');
    expect(left).toMatchObject({ queued: 3, processing: 0, drawing: [] });
    expect(left.waiting).toEqual(first.waiting);
  });

  it('has each running worker with the batch, the models and the memory of its devices, within a second or two', async () => {
    const engine: EngineReport = {
      device: 'cuda:0',
      tasks: 0,
      pictures: 0,
      stepMs: null,
      loaded: [{ name: 'sd1.5@0123456789ab', bytes: 2e9 }],
      memoryBytes: 8e9,
    };
    const fail = (error: unknown) => {
      throw error;
    };
    const workers = new LiveWorkers(api.dataSource);
    const older = await workers.join(() => ({ devices: ['cpu'], models: ['shapes'] }), fail);
    const worker = await workers.join(
      () => ({ devices: ['cuda:0'], models: ['sd1.5'], engines: [{ ...engine }] }),
      fail,
    );
    const device = {
      name: 'cuda:0',
      tasks: 0,
      batch: 0,
      step_ms: null,
      loaded: engine.loaded,
      memory_bytes: 2e9,
      memory_limit_bytes: 8e9,
    };
    const found = await read<WorkerDto[]>('/v1/workers');
    expect(found).toMatchObject([
      { devices: [device], models: ['sd1.5'] },
      { devices: [], models: ['shapes'] },
    ]);
    const beat = found[0].heartbeat_at;
    Object.assign(engine, { tasks: 2, pictures: 5, stepMs: 120 });
    await until(async () => {
      const [now] = await read<WorkerDto[]>('/v1/workers');
      return now.devices[0].batch === 5 && now.devices[0].step_ms === 120 && now.devices[0].tasks === 2;
    }, 'its batch is there');
    expect((await read<WorkerDto[]>('/v1/workers'))[0].heartbeat_at >= beat).toBe(true);
    await worker.leave();
    await older.leave();
    expect(await read('/v1/workers')).toEqual([]);
  });

  it('has failed tasks, newest first, in pages, with the reason and without the prompts', async () => {
    const ids: string[] = [];
    for (const n of [1, 2, 3, 4]) {
      ids.unshift(await draw());
      await failTask(api, ids[0], `It could not be drawn: reason ${n}.`);
    }
    // Of one millisecond, so that only their ids tell them apart.
    await api.dataSource.query(
      `UPDATE tasks SET completed_at = '2026-11-20T10:00:00.123Z', created_at = '2026-11-20T09:00:00Z' WHERE status = 'failed'`,
    );
    const sandbox = await draw({ metadata: { sandbox: { fail: 'wanted' } } }, await api.createKey({ sandbox: true }));
    const failed = () => api.dataSource.manager.countBy(Task, { id: sandbox, status: 'failed' });
    await until(async () => (await failed()) === 1, 'the sandbox has failed');
    const whole = await api.request<FailureDto[]>('GET', '/v1/failures', { key: admin });
    const sorted = await api.dataSource.query<{ id: string }[]>(
      'SELECT id FROM tasks WHERE id = ANY($1) ORDER BY id DESC',
      [ids],
    );
    expect(whole.body.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id));
    expect(whole.body.find(({ id }) => id === ids[0])).toEqual({
      id: ids[0],
      kind: 'generation',
      key_id: shop.id,
      key_name: 'shop',
      model: 'sd1.5',
      served_by: null,
      error: 'It could not be drawn: reason 4.',
      attempts: 1,
      worker_deaths: 0,
      created_at: '2026-11-20T09:00:00.000Z',
      completed_at: '2026-11-20T10:00:00.123Z',
    });
    expect(whole.text).not.toContain(secret);
    expect(await inPages('/v1/failures')).toEqual(whole.body);
    const after = await read<FailureDto[]>(`/v1/failures?after=${whole.body[1].id}`);
    expect(after).toEqual(whole.body.slice(2));
  });

  /** All of a list, read in pages of one. */
  async function inPages(path: string): Promise<unknown[]> {
    const elements: unknown[] = [];
    let next: string | undefined = `${path}${path.includes('?') ? '&' : '?'}limit=1`;
    while (next !== undefined) {
      const reply: Reply<unknown[]> = await api.request<unknown[]>('GET', next, { key: admin });
      elements.push(...reply.body);
      const link: string | undefined = /<([^<>]+)>/.exec(reply.headers.get('link') ?? '')?.[1];
      next = link === undefined ? undefined : new URL(link).pathname + new URL(link).search;
    }
    return elements;
  }

  it('has the deliveries of all keys by status, without the path of a receiver, and sends one again', async () => {
    let answer = 500;
    const hook = await receiver((_, response) => response.writeHead(answer).end());
    const webhook = `${hook.url}/token-of-a-receiver`;
    const cancel = async (id: string) => api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key: shop });
    const ids = [await draw({ webhook }), await draw({ webhook })];
    for (const id of ids) await cancel(id);
    const found = await until(async () => {
      const list = await read<KeyDeliveryDto[]>('/v1/deliveries');
      return list.length === 2 && list.every(({ last_attempt }) => last_attempt !== null) ? list : undefined;
    }, 'both were tried');
    const delivery = found.find(({ record_id }) => record_id === ids[0])!;
    expect(delivery).toMatchObject({
      kind: 'generation',
      key_id: shop.id,
      key_name: 'shop',
      receiver: new URL(hook.url).origin,
      status: 'pending',
      attempts: 1,
      last_attempt: { status_code: 500, error: expect.any(String) as string },
      completed_at: null,
    });
    expect(JSON.stringify(found)).not.toContain('token-of-a-receiver');
    expect(await inPages('/v1/deliveries?status=pending')).toHaveLength(2);
    expect(await read('/v1/deliveries?status=failed')).toEqual([]);
    answer = 204;
    const again = await api.request<KeyDeliveryDto>('POST', `/v1/deliveries/${delivery.id}/redeliver`, { key: admin });
    expect([again.status, again.body.id]).toEqual([201, delivery.id]);
    await until(async () => {
      const [done] = await read<KeyDeliveryDto[]>('/v1/deliveries?status=delivered');
      return done?.id === delivery.id && done.attempts === 2;
    }, 'it has arrived');
    for (const id of [newIdentifier(), 'x', '%00']) {
      const { status, body } = await api.request('POST', `/v1/deliveries/${id}/redeliver`, { key: admin });
      expect([status, body.code]).toEqual([404, 'DeliveryNotFound']);
    }
  });

  it('has what each key stores, the largest first, and its limit', async () => {
    const small = await api.createKey({ name: 'small', maxStorageMb: 5 });
    await drawTask(api, await draw());
    await drawTask(api, await draw());
    await drawTask(api, await draw({}, small));
    const storage = await read<StorageDto>('/v1/storage');
    expect(storage.keys.map(({ key_name, limit_bytes }) => [key_name, limit_bytes])).toEqual([
      ['shop', 20_000_000_000],
      ['small', 5_000_000],
    ]);
    const [most, less] = storage.keys;
    expect(most.picture_bytes).toBe(2 * less.picture_bytes);
    expect(storage.picture_bytes).toBe(3 * less.picture_bytes);
    expect(storage.disk_free_bytes).toBeLessThanOrEqual(storage.disk_total_bytes!);
  });

  it('has the usage of any key, as the key itself has it', async () => {
    await drawTask(api, await draw(), 1.5);
    const own = await api.request('GET', '/v1/usage', { key: shop });
    expect(own.body).toMatchObject([{ images: 1, compute_seconds: 1.5 }]);
    expect(await read(`/v1/keys/${shop.id}/usage`)).toEqual(own.body);
    expect(await read(`/v1/keys/${admin.id}/usage?group_by=model`)).toEqual([]);
    const { status, body } = await api.request('GET', `/v1/keys/${newIdentifier()}/usage`, { key: admin });
    expect([status, body.code]).toEqual([404, 'KeyNotFound']);
  });

  it('is told apart from what any key may read of itself', async () => {
    for (const [key, name, scopes] of [
      [admin, 'operator', ['admin']],
      [await api.createKey({ name: 'reader', scopes: ['read'] }), 'reader', ['read']],
    ] as const) {
      const { status, body, text } = await api.request('GET', '/v1/key', { key });
      expect([status, body.id, body.name, body.scopes]).toEqual([200, key.id, name, scopes]);
      expect(text).not.toMatch(/token|secret/);
    }
  });
});
