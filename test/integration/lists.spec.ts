import { performance } from 'node:perf_hooks';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { DataSource, type EntityManager, type Logger } from 'typeorm';
import { Task } from '@app/domain';
import { startTestApi } from '../support/api';
import { drawTask, failTask, makeFinetune, makePrompts } from '../support/factories';
import { until } from '../support/until';
import { manyTasks } from '../support/many-tasks';
import { ofSuite, ofTest } from '../support/of-suite';

const rows = 100_000;
/** Far more than the socket buffers of both sides hold. */
const wholeRows = 2_000;
/** One node of a plan in the form of `EXPLAIN (FORMAT JSON)`. */
interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Scan Direction'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  Plans?: PlanNode[];
}
interface Explained {
  nodes: PlanNode[];
  executionMs: number;
}
const metadataBytes = 15_000;
const path = '/v1/sd/text-to-image';
interface GenerationJson {
  id: string;
  metadata: { index: number };
  images: string[];
}
interface Item {
  id: string;
}

const api = ofSuite(startTestApi);

describe(`a list of ${rows} rows of one caller`, () => {
  const key = ofSuite(() => api.createKey());
  let finetuneId: string;
  let queries: { sql: string; parameters: unknown[] }[];

  beforeAll(async () => {
    const other = await api.createKey();
    finetuneId = (await makeFinetune(api, key, { model: 'shapes' })).id;
    await api.dataSource.transaction(async (manager) => {
      // These rows fit together; the database need not check each.
      await manager.query('SET LOCAL session_replication_role = replica');
      await insertGenerations(manager, 'g', key.id, rows);
      await insertGenerations(manager, 'o', other.id, rows / 10);
      await insertPrompts(manager, finetuneId);
    });
    await api.dataSource.query('ANALYZE');
    api.app.get(DataSource).logger = {
      logQuery: (sql: string, parameters: unknown[] = []) => void queries.push({ sql, parameters }),
    } as unknown as Logger;
  });
  beforeEach(() => {
    queries = [];
  });
  const idOf = (prefix: string, index: number) => prefix + String(index).padStart(23, '0');
  const idSql = `$1 || lpad(i::text, 23, '0')`;

  async function insertTasks(
    manager: EntityManager,
    prefix: string,
    kind: string,
    ownerId: string,
    count: number,
  ): Promise<void> {
    await manager.query(
      `WITH ${manyTasks(count, { id: idSql, kind: '$2', owner: '$3', prompt: `'a robot number ' || i`, status: `'succeeded'` })}
       SELECT`,
      [prefix, kind, ownerId],
    );
    await manager.query(
      `INSERT INTO images (id, task_id, index, token, storage_key, content_type, width, height, bytes)
       SELECT ${idSql}, ${idSql}, 0, ${idSql}, ${idSql} || '/1/0.png', 'image/png', 512, 512, 1000
       FROM generate_series(1, ${count}) AS i`,
      [prefix],
    );
  }

  async function insertGenerations(
    manager: EntityManager,
    prefix: string,
    ownerId: string,
    count: number,
  ): Promise<void> {
    await insertTasks(manager, prefix, 'generation', ownerId, count);
    await manager.query(
      `INSERT INTO generations (id, owner_id, account_id) SELECT ${idSql}, $2, $2 FROM generate_series(1, ${count}) AS i`,
      [prefix, ownerId],
    );
  }

  async function insertPrompts(manager: EntityManager, id: string): Promise<void> {
    await insertTasks(manager, 'p', 'prompt', key.id, rows);
    await manager.query(
      `INSERT INTO finetune_prompts (id, owner_id, account_id, finetune_id, prompt)
       SELECT ${idSql}, $2, $2, $3, 'a robot' FROM generate_series(1, ${rows}) AS i`,
      ['p', key.id, id],
    );
  }

  /** The plans of the last request's queries on these tables. */
  async function explain(table: string): Promise<Explained[]> {
    const made = queries.filter(({ sql }) => sql.startsWith('SELECT') && sql.includes(`"${table}"`));
    return Promise.all(
      made.map(async ({ sql, parameters }) => {
        const [{ 'QUERY PLAN': plan }] = await api.dataSource.query<
          { 'QUERY PLAN': [{ Plan: PlanNode; 'Execution Time': number }] }[]
        >(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, parameters);
        const nodes: PlanNode[] = [];
        for (const open = [plan[0].Plan]; open.length > 0;) {
          const node = open.pop()!;
          nodes.push(node);
          open.push(...(node.Plans ?? []));
        }
        return { nodes, executionMs: plan[0]['Execution Time'] };
      }),
    );
  }

  const lists = [
    {
      name: 'Generations',
      prefix: 'g',
      table: 'generations',
      index: 'generations_account_seq_idx',
      path: () => '/v1/sd/text-to-image',
    },
    {
      name: 'Prompts',
      prefix: 'p',
      table: 'finetune_prompts',
      index: 'finetune_prompts_finetune_seq_idx',
      path: () => `/v1/finetunes/${finetuneId}/prompts`,
    },
  ];
  const pages = [
    { page: 'the first', after: undefined, first: rows, count: 100 },
    { page: 'one in the middle', after: rows / 2, first: rows / 2 - 1, count: 100 },
    { page: 'the last', after: 51, first: 50, count: 50 },
  ];
  const cases = lists.flatMap((list) => pages.map((page) => ({ ...list, ...page })));

  it.each(cases)(
    'reads $page page of $name by index, without a sort',
    async ({ prefix, table, index, path, after, first, count }) => {
      const query = after === undefined ? '?limit=100' : `?limit=100&after=${idOf(prefix, after)}`;
      const startedAt = performance.now();
      const { status, body } = await api.request<{ id: string }[]>('GET', `${path()}${query}`, { key });
      const httpMs = performance.now() - startedAt;
      expect(status).toBe(200);
      expect(body.map(({ id }) => id)).toEqual(Array.from({ length: count }, (_, i) => idOf(prefix, first - i)));

      const explained = await explain(table);
      // A query for where the page begins, and batches of growing size.
      expect(explained.length).toBeGreaterThan(after === undefined ? 0 : 1);
      expect(explained.length).toBeLessThanOrEqual(after === undefined ? 3 : 4);
      for (const { nodes } of explained) {
        const types = nodes.map((node) => node['Node Type']);
        expect(types.filter((type) => /Sort|Seq Scan|Bitmap/.test(type))).toEqual([]);
        // No node reads more rows than the page has, plus the one that shows whether there is a next page.
        for (const node of nodes) expect(node['Actual Rows'] * node['Actual Loops']).toBeLessThanOrEqual(101);
      }
      expect(explained.at(-1)?.nodes).toContainEqual(
        expect.objectContaining({ 'Node Type': 'Index Scan', 'Index Name': index, 'Scan Direction': 'Backward' }),
      );
      const images = await explain('images');
      expect(images.length).toBeGreaterThan(0);
      for (const { nodes } of images) expect(nodes.map((node) => node['Node Type'])).not.toContain('Seq Scan');
      const databaseMs = [...explained, ...images].reduce((sum, { executionMs }) => sum + executionMs, 0);
      process.stdout.write(
        `${table} from ${first}: ${databaseMs.toFixed(2)} ms at the database, ${httpMs.toFixed(0)} ms over HTTP\n`,
      );
    },
  );

  it.each(lists)('finds that no $name have a status without reading the others', async ({ table, path }) => {
    for (const query of ['status=failed', 'status=failed&limit=100', 'created_before=2020-01-01']) {
      queries = [];
      const { status, body } = await api.request('GET', `${path()}?${query}`, { key });
      expect([status, body]).toEqual([200, []]);
      for (const { nodes } of await explain(table))
        for (const node of nodes) expect(node['Actual Rows'] * node['Actual Loops']).toBeLessThanOrEqual(101);
    }
  });
});

describe(`a complete list of ${wholeRows} rows with ${metadataBytes} bytes of metadata`, () => {
  const key = ofSuite(() => api.createKey());
  let batches: number[] = [];
  /** The answer of the api. */
  let answers: ServerResponse[] = [];

  beforeAll(async () => {
    await insert('w', key.id, wholeRows);
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
  async function insert(prefix: string, ownerId: string, count: number): Promise<void> {
    const id = `$1 || lpad(i::text, 23, '0')`;
    await api.dataSource.query(
      `WITH ${manyTasks(count, { id, owner: '$2', prompt: `'say "metadata":null'`, status: `'succeeded'` })}, pictures AS (
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
    expect(body.map(({ metadata }) => metadata.index)).toEqual(
      Array.from({ length: wholeRows }, (_, i) => wholeRows - i),
    );
    for (const index of [0, 31, 32, 33, wholeRows - 1]) {
      const one = await api.request<GenerationJson>('GET', `${path}/${body[index].id}`, { key });
      expect(body[index]).toEqual(one.body);
      expect(Object.keys(body[index])).toEqual(Object.keys(one.body));
    }
    // About half a megabyte each.
    expect(Math.max(...batches)).toBeLessThanOrEqual(40);
  });

  it('goes on after an element, and says in pages what comes next', async () => {
    const whole = await api.request<GenerationJson[]>('GET', `${path}?after=w${String(101).padStart(23, '0')}`, {
      key,
    });
    expect(whole.body.map(({ metadata }) => metadata.index)).toEqual(Array.from({ length: 100 }, (_, i) => 100 - i));
    expect(whole.headers.get('link')).toBeNull();
    batches = [];
    const page = await api.request<GenerationJson[]>('GET', `${path}?limit=100`, { key });
    expect(page.body.map(({ metadata }) => metadata.index)).toEqual(
      Array.from({ length: 100 }, (_, i) => wholeRows - i),
    );
    // A page is read in batches too, so that others get their turn in between.
    expect(Math.max(...batches)).toBeLessThanOrEqual(40);
    const next = /after=([\w-]{22})>/.exec(page.headers.get('link') ?? '')?.[1];
    const following = await api.request<GenerationJson[]>('GET', `${path}?limit=1&after=${next}`, { key });
    expect(following.body.map(({ metadata }) => metadata.index)).toEqual([wholeRows - 100]);
  });

  it('holds no connection while its reader rests, lets no second one run, and refuses nothing else', async () => {
    const response = await open();
    await stalled();
    const { length } = batches;
    expect(length).toBeLessThan(wholeRows / 35);
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

describe('lists of the longest texts', () => {
  const key = ofSuite(() => api.createKey());
  const rowsOfTexts = 60;
  let sizes: number[] = [];

  beforeAll(async () => {
    await api.dataSource.query(
      `WITH ${manyTasks(rowsOfTexts, { id: `'t' || lpad(i::text, 23, '0')`, owner: '$1', prompt: `repeat(chr(1), 32000)` })}
       INSERT INTO generations (id, owner_id) SELECT 't' || lpad(i::text, 23, '0'), $1
       FROM generate_series(1, ${rowsOfTexts}) AS i ORDER BY i`,
      [key.id],
    );
    api.app.getHttpServer().on('request', (_: IncomingMessage, answer: ServerResponse) => {
      const write = answer.write.bind(answer) as (...args: unknown[]) => boolean;
      answer.write = (...args: unknown[]) => {
        sizes.push(String(args[0]).length);
        return write(...args);
      };
    });
  });
  beforeEach(() => {
    sizes = [];
  });
  const indexesOf = (body: Item[]) => body.map(({ id }) => Number(id.slice(1)));
  const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first - i);

  it('are pages of many pieces, with the address of the next', async () => {
    const page = await api.request<Item[]>('GET', `${path}?limit=50`, { key });
    expect(indexesOf(page.body)).toEqual(from(rowsOfTexts, 50));
    expect(sizes.length).toBeGreaterThanOrEqual(50);
    expect(Math.max(...sizes)).toBeLessThan(300_000);
    const next = /after=([\w-]{22})>/.exec(page.headers.get('link') ?? '')?.[1];
    const last = await api.request<Item[]>('GET', `${path}?limit=50&after=${next}`, { key });
    expect([indexesOf(last.body), last.headers.get('link')]).toEqual([from(10, 10), null]);
    expect((await api.request('HEAD', `${path}?limit=50`, { key })).headers.get('link')).toMatch(/rel="next"$/);
  });

  it('are complete', async () => {
    expect(indexesOf((await api.request<Item[]>('GET', path, { key })).body)).toEqual(from(rowsOfTexts, rowsOfTexts));
    const rest = await api.request<Item[]>('GET', `${path}?after=t${'21'.padStart(23, '0')}`, { key });
    expect(indexesOf(rest.body)).toEqual(from(20, 20));
  });
});

describe('Lists', () => {
  const key = ofTest(() => api.createKey());

  const generations = '/v1/sd/text-to-image';
  const create = async () => {
    const { body } = await api.request<Item>('POST', generations, { key, body: { prompt: 'x' } });
    return body.id;
  };
  const idsOf = async (path: string) => (await api.request<Item[]>('GET', path, { key })).body.map(({ id }) => id);
  const nextOf = (link: string | null) => {
    const next = /^<([^>]+)>; rel="next"/.exec(link ?? '')?.[1];
    return next && new URL(next).pathname + new URL(next).search;
  };

  it('of Generations are limited to a status', async () => {
    const [queued, drawn, failed] = [await create(), await create(), await create()];
    await drawTask(api, drawn);
    await failTask(api, failed, 'No more paint.');
    expect(await idsOf(`${generations}?status=queued`)).toEqual([queued]);
    expect(await idsOf(`${generations}?status=succeeded`)).toEqual([drawn]);
    expect(await idsOf(`${generations}?status=failed&limit=10`)).toEqual([failed]);
    expect(await idsOf(`${generations}?status=canceled`)).toEqual([]);
  });

  it('of Generations and Prompts are limited to times', async () => {
    const finetune = await makeFinetune(api, key);
    const prompts = (
      await makePrompts(
        api,
        key,
        finetune.id,
        Array.from({ length: 3 }, () => ({ prompt: 'a robot' })),
      )
    ).map(({ id }) => id);
    const made = [await create(), await create(), await create()];
    for (const ids of [prompts, made])
      for (const [day, id] of ids.entries())
        await api.dataSource.manager.update(Task, { id }, { createdAt: new Date(`2026-01-0${day + 1}T12:00:00Z`) });
    const lists = [
      [generations, made],
      [`/v1/finetunes/${finetune.id}/prompts`, prompts],
    ] as const;
    for (const [path, [first, second, third]] of lists) {
      expect(await idsOf(`${path}?created_after=2026-01-02`)).toEqual([third, second]);
      expect(await idsOf(`${path}?created_before=2026-01-02T12:00:00Z`)).toEqual([first]);
      expect(await idsOf(`${path}?created_after=2026-01-01T12:00:00.000Z&created_before=2026-01-03`)).toEqual([second]);
      expect(await idsOf(`${path}?created_after=2026-01-02T13:00:00%2B02:00&status=queued`)).toEqual([third, second]);
    }
  });

  it('are read to the end by a client that deletes what it reads', async () => {
    const made = [await create(), await create(), await create(), await create(), await create()];
    const seen: string[] = [];
    let path: string | undefined = `${generations}?limit=2&status=queued`;
    while (path) {
      const { status, body, headers } = await api.request<Item[]>('GET', path, { key });
      expect(status).toBe(200);
      path = nextOf(headers.get('link'));
      for (const { id } of body) {
        seen.push(id);
        await api.request('DELETE', `${generations}/${id}`, { key });
      }
    }
    expect(seen).toEqual(made.reverse());
  });

  it('keep their place while their elements leave what they are limited to', async () => {
    const made = [await create(), await create(), await create()];
    const first = await api.request<Item[]>('GET', `${generations}?limit=1&status=queued`, { key });
    await drawTask(api, first.body[0].id);
    expect(await idsOf(`${generations}?limit=1&status=queued&after=${first.body[0].id}`)).toEqual([made[1]]);
    expect(await idsOf(nextOf(first.headers.get('link'))!)).toEqual([made[1]]);
  });

  it('have cursors that tell nothing, and are worth nothing in another list', async () => {
    await create();
    await create();
    const { headers } = await api.request('GET', `${generations}?limit=1`, { key });
    const after = new URL(`http://x${nextOf(headers.get('link'))}`).searchParams.get('after')!;
    expect(after).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect((await api.request('GET', `/v1/finetunes?after=${after}`, { key })).status).toBe(400);
    const other = await api.createKey();
    expect((await api.request('GET', `${generations}?after=${after}`, { key: other })).status).toBe(400);
    const changed = `${after[0] === 'A' ? 'B' : 'A'}${after.slice(1)}`;
    expect((await api.request('GET', `${generations}?after=${changed}`, { key })).status).toBe(400);
  });
});
