import { performance } from 'node:perf_hooks';
import type { EntityManager, Logger } from 'typeorm';
import { DataSource } from 'typeorm';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { makeFinetune } from '../support/factories';

const rows = 100_000;

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

describe(`a list of ${rows} rows of one caller`, () => {
  let api: TestApi;
  let key: TestKey;
  let finetuneId: string;
  let queries: { sql: string; parameters: unknown[] }[];

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
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
  afterAll(() => api.close());

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
      `INSERT INTO image_tasks (id, kind, owner_id, prompt, cfg, steps, seed, model, aspect_ratio, high_resolution,
         num_images, status, created_at)
       SELECT ${idSql}, $2, $3, 'a robot number ' || i, 7.5, 30, i, 'shapes', 'square', false, 1, 'succeeded', now()
       FROM generate_series(1, ${count}) AS i`,
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
      `INSERT INTO generations (id, owner_id) SELECT ${idSql}, $2 FROM generate_series(1, ${count}) AS i`,
      [prefix, ownerId],
    );
  }

  async function insertPrompts(manager: EntityManager, id: string): Promise<void> {
    await insertTasks(manager, 'p', 'prompt', key.id, rows);
    await manager.query(
      `INSERT INTO finetune_prompts (id, owner_id, finetune_id, prompt)
       SELECT ${idSql}, $2, $3, 'a robot' FROM generate_series(1, ${rows}) AS i`,
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
      index: 'generations_owner_seq_idx',
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
