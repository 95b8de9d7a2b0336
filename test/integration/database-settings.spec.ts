import { createReadStream, createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { assertMigrated, createDataSource, dumpTables, loadTables, migrate } from '@app/database';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { insertKey, startTestApi, type TestApi } from '../support/api';
import { createEmptyDatabase } from '../support/database';
import { ofSuite } from '../support/of-suite';

/** What operators set for a database or a role, and no client of theirs notices. */
const settings = {
  datestyle: `'SQL, DMY'`,
  intervalstyle: `'sql_standard'`,
  timezone: `'Asia/Kathmandu'`,
  bytea_output: `'escape'`,
  extra_float_digits: '-15',
  search_path: `'elsewhere'`,
  array_nulls: 'off',
  transform_null_equals: 'on',
  default_transaction_isolation: `'serializable'`,
  default_transaction_deferrable: 'on',
  client_encoding: `'LATIN1'`,
  statement_timeout: `'1min'`,
  lock_timeout: `'1min'`,
  idle_in_transaction_session_timeout: `'1min'`,
  idle_session_timeout: `'1min'`,
  transaction_timeout: `'1min'`,
};

interface GenerationJson {
  id: string;
  started_at: string;
}

async function set(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  const name = new URL(databaseUrl).pathname.slice(1);
  const statements = Object.entries(settings).map(([key, value]) => `ALTER DATABASE ${name} SET ${key} = ${value}`);
  // The connections that are open go on with the settings from before.
  await client.query(
    `${statements.join('; ')}; SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await client.end();
}

describe('A database with other settings than a new one has', () => {
  const api = ofSuite(async (): Promise<TestApi> => {
    const database = await createEmptyDatabase();
    await set(database.url);
    await migrate(database.url);
    const started = await startTestApi({ DATABASE_URL: database.url });
    return {
      ...started,
      async close() {
        await started.close();
        await database.drop();
      },
    };
  });
  const key = ofSuite(() => insertKey(api.app.get(DataSource)));
  const path = '/v1/sd/text-to-image';
  const create = (n: number) =>
    api.request<GenerationJson>('POST', path, { key, body: { prompt: `čtyři ${n}`, metadata: { n: String(n) } } });

  it('takes 24 Generations at once, and shows them', async () => {
    const replies = await Promise.all(Array.from({ length: 24 }, (_, n) => create(n)));
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 201));
    for (const { body } of replies) {
      const { body: found } = await api.request<GenerationJson>('GET', `${path}/${body.id}`, { key });
      expect(found).toEqual(body);
      expect(Math.abs(Date.parse(found.started_at) - Date.now())).toBeLessThan(60_000);
    }
    const { body: list } = await api.request<GenerationJson[]>('GET', `${path}?limit=100`, { key });
    expect(list.map(({ id }) => id).sort()).toEqual(replies.map(({ body }) => body.id).sort());
  });

  it('is ready, and is canceled on and deleted from', async () => {
    expect((await api.request('GET', '/health/ready')).body).toMatchObject({ status: 'ok' });
    const { id } = (await create(24)).body;
    expect((await api.request('POST', `${path}/${id}/cancel`, { key })).status).toBeLessThan(300);
    expect((await api.request('DELETE', `${path}/${id}`, { key })).status).toBeLessThan(300);
  });

  it('ends nothing that takes long', async () => {
    const dataSource = await createDataSource(api.config.databaseUrl!).initialize();
    const names = ['statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout'];
    const rows = await dataSource.query<{ setting: string }[]>('SELECT setting FROM pg_settings WHERE name = ANY($1)', [
      names,
    ]);
    await dataSource.destroy();
    expect(rows.map(({ setting }) => setting)).toEqual(names.map(() => '0'));
  });

  it('is dumped, and the dump is loaded into another one of these settings', async () => {
    await create(25);
    const other = await createEmptyDatabase();
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-dump-'));
    try {
      await set(other.url);
      const contents = await dumpTables(api.config.databaseUrl!, (table, rows) =>
        pipeline(rows, createWriteStream(join(folder, table))),
      );
      await loadTables(other.url, contents, (table) => createReadStream(join(folder, table)));
      await expect(assertMigrated(other.url)).resolves.toBeUndefined();
      const tasks = contents.tables.find(({ name }) => name === 'tasks');
      expect(tasks?.rows).toBeGreaterThan(0);
    } finally {
      await other.drop();
      rmSync(folder, { recursive: true });
    }
  });
});
