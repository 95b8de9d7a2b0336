import { readFile } from 'node:fs/promises';
import { ClockWatch } from '@app/database';
import { serviceVersion } from '@app/process';
import { itOnce } from '../support/back-ends';
import { startTestApi } from '../support/api';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';
import { ofTest } from '../support/of-suite';

interface Health {
  status: string;
  checks: Record<string, boolean>;
  detail: string;
}

describe('The observability of the api', () => {
  const api = ofTest(startTestApi);
  const startReceiver = receiversOfSuite();
  const key = ofTest(() => api.createKey());

  const create = async (webhook?: string): Promise<string> => {
    const body = { prompt: 'a secret prompt', ...(webhook && { webhook }) };
    return (await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body })).body.id;
  };

  /** A value by its metric and labels; undefined if it is absent. */
  const read = async (): Promise<(series: string) => number | undefined> => {
    const { text } = await api.request('GET', '/metrics');
    const values = new Map(
      text
        .split('\n')
        .filter((line) => line && !line.startsWith('#'))
        .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );
    return (series) => values.get(series);
  };

  itOnce('counts requests by route, method and status, and never by path', async () => {
    const id = await create();
    await api.request('GET', `/v1/sd/text-to-image/${id}`, { key });
    await api.request('GET', `/v1/sd/text-to-image/${id}`);
    await api.request('GET', `/nothing/${id}`);
    const valueOf = await read();
    const of = (route: string, method: string, status: number) =>
      valueOf(`darkroom_http_requests_total{route="${route}",method="${method}",status="${status}"}`);
    expect(of('/v1/sd/text-to-image', 'POST', 201)).toBe(1);
    expect(of('/v1/sd/text-to-image/:id', 'GET', 200)).toBe(1);
    expect(of('/v1/sd/text-to-image/:id', 'GET', 401)).toBe(1);
    expect(of('none', 'GET', 404)).toBe(1);
    expect(valueOf('darkroom_http_request_seconds_count{route="/v1/sd/text-to-image",method="POST"}')).toBe(1);
    expect((await api.request('GET', '/metrics')).text).not.toContain(id);
  });

  it('shows how many tasks wait and for how long', async () => {
    await create();
    await create();
    await api.dataSource.query(`UPDATE tasks SET created_at = now() - interval '90 seconds'`);
    const valueOf = await read();
    expect(valueOf('darkroom_queue_depth{queue="images"}')).toBe(2);
    expect(valueOf('darkroom_queue_oldest_seconds{queue="images"}')).toBeGreaterThanOrEqual(90);
    expect(valueOf('darkroom_queue_depth{queue="webhooks"}')).toBe(0);
    expect(valueOf('darkroom_queue_jobs{queue="images",state="waiting"}')).toBe(2);
    expect(valueOf('darkroom_tasks_processing{queue="drawing"}')).toBe(0);
    expect(valueOf('darkroom_ready{check="database"}')).toBe(1);
    expect(valueOf('darkroom_disk_free_bytes')).toBeGreaterThan(0);
    expect(valueOf('process_resident_memory_bytes')).toBeGreaterThan(0);
  });

  itOnce('shows how many tasks a worker may take and how long the oldest waits, not one that none may', async () => {
    const of = async (metric: string, queue = 'drawing') =>
      (await read())(`darkroom_takeable_${metric}{queue="${queue}"}`);
    const age = () => of('oldest_seconds');
    const [held, waiting] = [await create(), await create()];
    const change = (set: string, id: string) => api.dataSource.query(`UPDATE tasks SET ${set} WHERE id = $1`, [id]);
    for (const id of [held, waiting]) await change(`created_at = now() - interval '90 seconds'`, id);
    expect(await age()).toBeGreaterThanOrEqual(90);
    expect([await of('tasks'), await of('tasks', 'training'), await of('oldest_seconds', 'training')]).toEqual([
      2, 0, 0,
    ]);
    // Of two tasks of a key that may have one under way, one may be taken.
    await api.dataSource.query('UPDATE api_keys SET max_concurrent = 1 WHERE id = $1', [key.id]);
    expect(await of('tasks')).toBe(1);
    // The key has as much under way as it may.
    await change(`status = 'processing', place = 1, heartbeat_at = now()`, held);
    expect([await age(), await of('tasks')]).toEqual([0, 0]);
    await change(`status = 'canceled', place = NULL`, held);
    expect(await age()).toBeGreaterThanOrEqual(90);
    for (const set of [`not_before = now() + interval '1 hour'`, 'not_before = NULL, sandbox = true']) {
      await change(set, waiting);
      expect([await age(), await of('tasks')]).toEqual([0, 0]);
    }
    await change(`sandbox = false, queue = 'training'`, waiting);
    expect([await of('tasks'), await of('tasks', 'training')]).toEqual([0, 1]);
  });

  itOnce('counts webhook attempts by their outcome', async () => {
    const receiver = await startReceiver((_, response, count) => response.writeHead(count === 1 ? 410 : 200).end());
    for (let i = 0; i < 2; i++) {
      await api.request('POST', `/v1/sd/text-to-image/${await create(receiver.url)}/cancel`, { key });
      await receiver.next(i + 1);
    }
    await until(async () => {
      const valueOf = await read();
      return (
        valueOf('darkroom_webhook_tries_total{outcome="failed"}') === 1 &&
        valueOf('darkroom_webhook_tries_total{outcome="delivered"}') === 1
      );
    }, 'both tries are counted');
  });

  itOnce('still answers when the database is away', async () => {
    await api.dataSource.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    expect((await api.request('GET', '/metrics')).status).toBe(200);
    expect((await api.request('GET', '/health/live')).status).toBe(200);
  });

  describe('ready', () => {
    /** The response once it has this status and content: on a busy machine a check may time out. */
    const ready = (status: number, detail?: string) =>
      until(
        async () => {
          const reply = await api.request<Health>('GET', '/health/ready');
          return reply.status === status && reply.body.detail === detail && reply;
        },
        `it answers ${status}: ${detail ?? 'ok'}`,
      );

    it('is true when everything works', async () => {
      const { body } = await ready(200);
      expect(body).toEqual({
        status: 'ok',
        version: serviceVersion,
        checks: { database: true, queue: true, storage: true, clock: true, disk: true, credentials: true },
        credentials: 'off',
      });
    });

    it('and each answer, errors included, say the version', async () => {
      const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
      const live = await api.request<{ version: string }>('GET', '/health/live');
      expect(live.body.version).toBe(version);
      for (const path of ['/health/live', '/v1/models', '/nowhere', '/openapi.json', '/'])
        expect((await fetch(api.baseUrl + path)).headers.get('x-darkroom-version')).toBe(version);
    });

    it('is true without the queue, for which workers do not wait, and says so', async () => {
      const repair = await api.backEnds.queue.breakDown();
      const degraded = await until(async () => {
        const { status, body } = await api.request<Health>('GET', '/health/ready');
        return status === 200 && body.status === 'degraded' && body;
      }, 'it is degraded');
      expect(degraded.checks).toMatchObject({ database: true, queue: false });
      await repair();
      await until(async () => (await ready(200)).body.status === 'ok', 'it is whole again');
    });

    it('is false when pictures cannot be stored', async () => {
      await api.backEnds.storage.breakDown();
      const { headers } = await ready(503, 'The service is not ready: storage.');
      expect(headers.get('retry-after')).toBe('2');
      expect((await read())('darkroom_ready{check="storage"}')).toBe(0);
    });

    itOnce('is false while the clock is wrong', async () => {
      const clock = api.app.get(ClockWatch);
      Object.assign(clock, { now: () => Date.parse('2020-01-01') });
      await clock.check();
      await ready(503, 'The service is not ready: clock.');
    });
  });
});
