import type { Client } from 'pg';
import { appliedMigrations, withClient } from './assert-usable';
import { DatabaseUnusableError } from './database-unusable-error';
import { inOrder } from './load-tables';
import { migrate, takeMigrationLock } from './migrate';
import { Baseline1796000000000, baselineSql } from './migrations/1796000000000-baseline';

/** The last migration of the last version with a table of image tasks. */
const lastOfEarlier = 'BrokenModels1795800000000';

/** Columns that are new or had another name. A column without an entry is copied, or gets its default. */
const sources: Record<string, { table?: string; columns?: Record<string, string> }> = {
  tasks: {
    table: 'image_tasks',
    columns: { cost: '0.05 * num_images * (steps + 4)' },
  },
  drawings: {
    table: 'image_tasks',
    columns: {
      width: `CASE aspect_ratio WHEN 'landscape' THEN 768 ELSE 512 END`,
      height: `CASE aspect_ratio WHEN 'portrait' THEN 768 ELSE 512 END`,
    },
  },
  webhook_deliveries: { columns: { task_id: 'generation_id', due_since: 'next_attempt_at' } },
};

/**
 * Brings the rows of a database with image tasks into the tables of this version, in one transaction: all or nothing.
 * No process of the service may run meanwhile.
 * @throws DatabaseUnusableError for any other database
 */
export async function carryOver(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await takeMigrationLock(client);
    if (!(await appliedMigrations(client))?.includes(lastOfEarlier))
      throw new DatabaseUnusableError(
        `The database does not have the tables that are carried over (${lastOfEarlier} is not applied): it is empty, of this version, or older than that. Nothing was changed.`,
      );
    await client.query(`BEGIN; DROP SCHEMA IF EXISTS bullmq CASCADE; CREATE SCHEMA earlier;
      DROP FUNCTION IF EXISTS insert_tasks(json); DROP TYPE IF EXISTS new_task`);
    for (const name of await tablesIn(client, 'public')) await client.query(`ALTER TABLE ${name} SET SCHEMA earlier`);
    await client.query(baselineSql);
    await client.query('DELETE FROM cursor_keys');
    const names = await tablesIn(client, 'public');
    for (const { name } of await inOrder(
      client,
      names.map((name) => ({ name })),
    ))
      await fill(client, name);
    await client.query(`
      CREATE TABLE migrations (id serial PRIMARY KEY, timestamp bigint NOT NULL, name varchar NOT NULL);
      INSERT INTO migrations (timestamp, name) VALUES (1796000000000, '${Baseline1796000000000.name}');
      DROP SCHEMA earlier CASCADE; COMMIT; ANALYZE`);
  });
  await migrate(databaseUrl);
}

async function tablesIn(client: Client, schema: string): Promise<string[]> {
  const statement = 'SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 ORDER BY 1';
  const { rows } = await client.query<{ name: string }>(statement, [schema]);
  return rows.map(({ name }) => name);
}

async function columnsOf(client: Client, schema: string, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2',
    [schema, table],
  );
  return rows.map(({ name }) => name);
}

async function fill(client: Client, name: string): Promise<void> {
  const { table = name, columns: given = {} } = sources[name] ?? {};
  const before = await columnsOf(client, 'earlier', table);
  const columns = (await columnsOf(client, 'public', name)).filter(
    (column) => before.includes(column) || column in given,
  );
  if (before.length === 0) return;
  const values = columns.map((column) => (before.includes(column) ? column : given[column]));
  await client.query(`INSERT INTO ${name} (${columns.join()}) SELECT ${values.join()} FROM earlier.${table}`);
  if (columns.includes('seq'))
    await client.query(`SELECT setval(pg_get_serial_sequence('${name}', 'seq'), max(seq)) FROM ${name}`);
}
