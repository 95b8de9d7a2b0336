import type { IncomingMessage, ServerResponse } from 'node:http';
import { get } from 'node:http';
import { once } from 'node:events';
import type { Logger } from 'typeorm';
import { DataSource } from 'typeorm';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { until } from '../support/until';

/** Far more than the socket buffers of both sides hold. */
const rows = 2_000;
const metadataBytes = 15_000;
const path = '/v1/sd/text-to-image';

interface GenerationJson {
  id: string;
  metadata: { index: number };
  images: string[];
}

describe(`a complete list of ${rows} rows with ${metadataBytes} bytes of metadata`, () => {
  let api: TestApi;
  let key: TestKey;
  let batches: number[] = [];
  /** What the api answers. */
  let answers: ServerResponse[] = [];

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    await insert('g', key.id, rows);
    api.app.getHttpServer().on('request', (_: IncomingMessage, answer: ServerResponse) => answers.push(answer));
    api.app.get(DataSource).logger = {
      logQuery: (sql: string, parameters: unknown[] = []) => {
        if (/FROM "generations".*LIMIT/s.test(sql))
          batches.push(Number(/LIMIT (\d+)/.exec(sql)?.[1] ?? parameters.at(-1)));
      },
      logQueryError: () => undefined,
    } as unknown as Logger;
  });
  beforeEach(() => {
    [batches, answers] = [[], []];
  });
  afterAll(() => api.close());

  async function insert(prefix: string, ownerId: string, count: number): Promise<void> {
    const id = `$1 || lpad(i::text, 23, '0')`;
    await api.dataSource.query(
      `WITH tasks AS (
         INSERT INTO image_tasks (id, kind, owner_id, prompt, cfg, steps, seed, model, aspect_ratio, high_resolution,
           num_images, status, created_at)
         SELECT ${id}, 'generation', $2, 'say "metadata":null', 7.5, 30, i, 'shapes', 'square', false, 1, 'succeeded', now()
         FROM generate_series(1, ${count}) AS i
       ), pictures AS (
         INSERT INTO images (id, task_id, index, token, storage_key, content_type, width, height, bytes)
         SELECT ${id}, ${id}, 0, ${id}, ${id} || '/1/0.png', 'image/png', 512, 512, 1000
         FROM generate_series(1, ${count}) AS i
       )
       INSERT INTO generations (id, owner_id, metadata)
       SELECT ${id}, $2, json_build_object('index', i, 'text', repeat('x', ${metadataBytes}))
       FROM generate_series(1, ${count}) AS i ORDER BY i`,
      [prefix, ownerId],
    );
  }

  const open = (query = ''): Promise<IncomingMessage> =>
    new Promise((resolve, reject) =>
      get(`${api.baseUrl}${path}${query}`, { headers: { authorization: `Bearer ${key.token}` } }, resolve).on(
        'error',
        reject,
      ),
    );
  /** Resolves when the api can write no more to a reader that reads nothing. */
  const stalled = () => until(async () => answers.at(-1)?.writableNeedDrain, 'the reader holds the list up');
  const waiting = (sql: string) =>
    until(
      async () =>
        (
          await api.dataSource.query<{ pid: number }[]>(
            `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'darkroom-api' AND ${sql}`,
          )
        )[0],
      'a connection of the api is found',
    );
  /** Makes the next read of the table fail as it does when the database ends. */
  async function failNextRead(): Promise<void> {
    const runner = api.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('LOCK TABLE generations IN ACCESS EXCLUSIVE MODE');
    void waiting(`wait_event_type = 'Lock'`)
      .then(({ pid }) => api.dataSource.query('SELECT pg_terminate_backend($1)', [pid]))
      .finally(() => runner.rollbackTransaction().finally(() => runner.release()));
  }

  /** A query on the ended connection, before the driver notices the end, gets a 503. */
  const served = () =>
    until(async () => (await api.request('GET', `${path}?limit=1`, { key })).status === 200, 'it is served again');

  it('has every record once, newest first, each as GET shows it, and is read in batches', async () => {
    const { status, headers, body } = await api.request<GenerationJson[]>('GET', path, { key });
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(body.map(({ metadata }) => metadata.index)).toEqual(Array.from({ length: rows }, (_, i) => rows - i));
    for (const index of [0, 31, 32, 33, rows - 1]) {
      const one = await api.request<GenerationJson>('GET', `${path}/${body[index].id}`, { key });
      expect(body[index]).toEqual(one.body);
      expect(Object.keys(body[index])).toEqual(Object.keys(one.body));
    }
    // About half a megabyte each.
    expect(Math.max(...batches)).toBeLessThanOrEqual(40);
  });

  it('goes on after an element, and says in pages what comes next', async () => {
    const whole = await api.request<GenerationJson[]>('GET', `${path}?after=g${String(101).padStart(23, '0')}`, {
      key,
    });
    expect(whole.body.map(({ metadata }) => metadata.index)).toEqual(Array.from({ length: 100 }, (_, i) => 100 - i));
    expect(whole.headers.get('link')).toBeNull();
    batches = [];
    const page = await api.request<GenerationJson[]>('GET', `${path}?limit=100`, { key });
    expect(page.body.map(({ metadata }) => metadata.index)).toEqual(Array.from({ length: 100 }, (_, i) => rows - i));
    // A page is read in batches too, so that others get their turn in between.
    expect(Math.max(...batches)).toBeLessThanOrEqual(40);
    const next = /after=([\w-]{22})>/.exec(page.headers.get('link') ?? '')?.[1];
    const following = await api.request<GenerationJson[]>('GET', `${path}?limit=1&after=${next}`, { key });
    expect(following.body.map(({ metadata }) => metadata.index)).toEqual([rows - 100]);
  });

  it('holds no connection while its reader rests, lets no second one run, and refuses nothing else', async () => {
    const response = await open();
    await stalled();
    const { length } = batches;
    expect(length).toBeLessThan(rows / 35);
    await until(async () => {
      const [{ count }] = await api.dataSource.query<{ count: number }[]>(
        `SELECT count(*)::integer AS count FROM pg_stat_activity WHERE datname = current_database()
           AND application_name = 'darkroom-api' AND (state <> 'idle' OR xact_start IS NOT NULL)`,
      );
      return count === 0;
    }, 'no connection is in use');
    const second = await api.request<{ code: string }>('GET', path, { key });
    expect([second.status, second.body.code, second.headers.get('retry-after')]).toEqual([429, 'ListRunning', '2']);
    expect((await api.request('GET', `${path}?limit=100`, { key })).status).toBe(200);
    expect((await api.request('GET', '/v1/finetunes', { key })).status).toBe(200);
    expect((await api.request('HEAD', path, { key })).status).toBe(200);
    expect((await api.request('GET', path, { key: await api.createKey() })).body).toEqual([]);
    response.destroy();
    await until(async () => (await api.request('HEAD', path, { key })).status === 200, 'it is over');
    await until(async () => (await api.request('GET', path, { key })).status === 200, 'the next one may run');
  });

  it('is cut off where the database fails, so that nobody takes half of it for all', async () => {
    const response = await open();
    await stalled();
    await failNextRead();
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    const [error] = (await once(response, 'error')) as [Error];
    expect(error.message).toBe('aborted');
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
    await served();
  });

  it('is a 503 where the database fails before the first element', async () => {
    await failNextRead();
    const { status, headers, body } = await api.request<{ code: string }>('GET', path, { key });
    expect([status, body.code, headers.get('content-type')]).toEqual([
      503,
      'ServiceUnavailable',
      'application/problem+json; charset=utf-8',
    ]);
    expect(headers.get('retry-after')).not.toBeNull();
    await served();
  });

  it('answers HEAD with its head alone', async () => {
    const { status, headers, text } = await api.request('HEAD', path, { key });
    expect([status, headers.get('content-type'), text]).toEqual([200, 'application/json; charset=utf-8', '']);
    const page = await api.request('HEAD', `${path}?limit=3`, { key });
    expect(page.headers.get('link')).toMatch(/rel="next"$/);
  });
});
