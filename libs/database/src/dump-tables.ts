import type { Readable } from 'node:stream';
import { type Client, escapeIdentifier } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { appliedMigrations, assertUsable, withClient } from './assert-usable';
import { NotMigratedError } from './database-unusable-error';
import { takeMigrationLock } from './migrate';

/** What a dump's rows need to be read. */
export interface DumpContents {
  /** Of the migrations that made the tables, in order. */
  migrations: string[];
  tables: { name: string; columns: string[]; rows: number }[];
  /** Last value of each sequence that has been used. */
  sequences: { name: string; value: string }[];
}

/**
 * Reads all our tables as of one moment, while the service runs, except the queue's: its jobs only wake workers.
 * @param write takes the rows of one table in PostgreSQL's text format of COPY
 * @throws DatabaseUnusableError
 */
export async function dumpTables(
  databaseUrl: string,
  write: (table: string, rows: Readable) => Promise<void>,
): Promise<DumpContents> {
  await assertUsable(databaseUrl);
  return withClient(databaseUrl, async (client) => {
    // No migration may change a table between the beginning of the transaction and the moment that the table is read.
    await takeMigrationLock(client);
    await client.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
    const migrations = await appliedMigrations(client);
    if (!migrations) throw new NotMigratedError('it has no tables');
    const tables: DumpContents['tables'] = [];
    for (const { name, columns } of await tablesOf(client)) {
      const rows = client.query(copyTo(`COPY ${listOf(name, columns)} TO STDOUT`));
      await write(name, rows);
      tables.push({ name, columns, rows: rows.rowCount ?? 0 });
    }
    return { migrations, tables, sequences: await sequencesOf(client) };
  });
}

/** A table and its columns, as COPY names them. */
export const listOf = (table: string, columns: readonly string[]): string =>
  `public.${escapeIdentifier(table)} (${columns.map(escapeIdentifier).join(', ')})`;

/** Without the table of migrations: whoever loads a dump runs them. */
async function tablesOf(client: Client): Promise<{ name: string; columns: string[] }[]> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'migrations'
        AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      GROUP BY c.relname ORDER BY c.relname`,
  );
  return rows;
}

/** Sequences are outside of transactions: a value here may be later than the table's last row. */
async function sequencesOf(client: Client): Promise<DumpContents['sequences']> {
  const { rows } = await client.query<{ name: string; value: string }>(
    `SELECT sequencename AS name, last_value AS value FROM pg_sequences
      WHERE schemaname = 'public' AND sequencename <> 'migrations_id_seq' AND last_value IS NOT NULL
      ORDER BY sequencename`,
  );
  return rows;
}
