import { Client } from 'pg';
import { migrations } from './migrations';

/** The database does not have the tables that this version needs. */
export class NotMigratedError extends Error {
  constructor(missing: string) {
    super(`The database is not migrated (${missing}): run "npm run migrate" first.`);
    this.name = 'NotMigratedError';
  }
}

/**
 * Checks, before a queue or a repository is opened, that every migration of ours and the queue's tables are there:
 * a consumer on a database without them would spin.
 * @throws NotMigratedError
 */
export async function assertMigrated(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const { rows } = await client.query<{ ours: string | null; queue: string | null }>(
      `SELECT to_regclass('public.migrations') AS ours, to_regclass('bullmq.migration') AS queue`,
    );
    if (!rows[0].ours || !rows[0].queue) throw new NotMigratedError('it has no tables');
    const applied = await client.query<{ name: string }>('SELECT name FROM migrations');
    const names = new Set(applied.rows.map(({ name }) => name));
    const missing = migrations.map(({ name }) => name).filter((name) => !names.has(name));
    if (missing.length > 0) throw new NotMigratedError(`${missing.join(', ')} is not applied`);
  } finally {
    await client.end();
  }
}
