import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Client, escapeIdentifier } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { DataSource } from 'typeorm';
import { assertUsable, withClient } from './assert-usable';
import { dataSourceOptions } from './data-source';
import { DatabaseUnusableError } from './database-unusable-error';
import { type DumpContents, listOf } from './dump-tables';
import { migrate } from './migrate';
import { migrations } from './migrations';

/** @throws DatabaseUnusableError if this version does not know a dump's tables, because another version made it. */
export function assertKnown(contents: Pick<DumpContents, 'migrations'>): void {
  const known = new Set(migrations.map(({ name }) => name));
  const unknown = contents.migrations.find((name) => !known.has(name));
  if (unknown)
    throw new DatabaseUnusableError(
      `The backup was made by another version of Darkroom (${unknown} is not known here): restore it with that version.`,
    );
}

/** @throws DatabaseUnusableError if the database has tables, or cannot be used. */
export async function assertEmpty(databaseUrl: string): Promise<void> {
  await assertUsable(databaseUrl);
  await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%s.%s', table_schema, table_name) AS name FROM information_schema.tables
        WHERE table_schema IN ('public', 'bullmq') ORDER BY name LIMIT 1`,
    );
    if (rows.length > 0)
      throw new DatabaseUnusableError(
        `The database has tables already (${rows[0].name}): a backup is restored only into an empty database, so make a new one. Nothing was changed.`,
      );
  });
}

/**
 * Makes the tables as of the dump, fills them in one transaction, and migrates them to this version.
 * @param open the rows of a table, as `dumpTables` gave them
 */
export async function loadTables(
  databaseUrl: string,
  contents: DumpContents,
  open: (table: string) => Readable,
): Promise<void> {
  assertKnown(contents);
  await assertEmpty(databaseUrl);
  await makeTables(databaseUrl, contents.migrations);
  await withClient(databaseUrl, async (client) => {
    await client.query('BEGIN');
    // Some migrations insert rows of their own, such as the key of the cursors.
    const names = contents.tables.map(({ name }) => `public.${escapeIdentifier(name)}`);
    await client.query(`TRUNCATE ${names.join(', ')}`);
    for (const name of await inOrder(client, contents.tables)) await fill(client, name, open(name.name));
    for (const { name, value } of contents.sequences)
      await client.query('SELECT setval($1::regclass, $2::bigint)', [`public.${escapeIdentifier(name)}`, value]);
    await client.query('COMMIT');
    await client.query('ANALYZE');
  });
  await migrate(databaseUrl);
}

/** Runs the migrations of the dump, and no later ones: those may have to change its rows. */
async function makeTables(databaseUrl: string, names: readonly string[]): Promise<void> {
  const wanted = new Set(names);
  const dataSource = new DataSource({
    ...dataSourceOptions(databaseUrl, { poolSize: 2 }),
    migrations: migrations.filter(({ name }) => wanted.has(name)),
  });
  await dataSource.initialize();
  try {
    await dataSource.runMigrations();
  } finally {
    await dataSource.destroy();
  }
}

async function fill(client: Client, table: DumpContents['tables'][number], rows: Readable): Promise<void> {
  const copy = client.query(copyFrom(`COPY ${listOf(table.name, table.columns)} FROM STDIN`));
  await pipeline(rows, copy);
  if (copy.rowCount !== table.rows)
    throw new Error(`The table ${table.name} got ${copy.rowCount} rows instead of ${table.rows}.`);
}

/** Tables after those that their foreign keys point to. */
async function inOrder<T extends { name: string }>(client: Client, tables: readonly T[]): Promise<T[]> {
  const { rows } = await client.query<{ from: string; to: string }>(
    `SELECT f.relname AS from, t.relname AS to FROM pg_constraint k
       JOIN pg_class f ON f.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
      WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace AND f.oid <> t.oid`,
  );
  const ordered = new Set<T>();
  const add = (table: T): void => {
    if (ordered.has(table)) return;
    const targets = rows.filter(({ from }) => from === table.name).map(({ to }) => to);
    for (const target of tables.filter(({ name }) => targets.includes(name))) add(target);
    ordered.add(table);
  };
  tables.forEach(add);
  return [...ordered];
}
