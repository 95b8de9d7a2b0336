import type { Client, QueryConfig } from 'pg';
import { DatabaseUnreachableError, DatabaseUnusableError } from './database-unusable-error';
import { migrations } from './migrations';
import { sessionSettings, SteadyClient } from './pool-options';

const oldestVersion = 14;
/** Statements by which a pooler that shares its connections is detected. */
const sessionChecks = 4;
const sessionTimeoutMs = 10_000;

/** Opens a connection for a few queries. @throws DatabaseUnreachableError */
export async function withClient<T>(databaseUrl: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new SteadyClient({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await client.connect().catch((error: unknown) => {
    throw new DatabaseUnreachableError(error);
  });
  try {
    await client.query(sessionSettings({ lockTimeoutMs: 10_000 }));
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Checks what no migration can fix: the server's version, the encoding, a pooler in between, and tables that are from
 * before the baseline or too new for this build.
 * @throws DatabaseUnusableError
 */
export async function assertUsable(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ version: number; encoding: string; shown: string }>(
      `SELECT current_setting('server_version_num')::integer AS version, current_setting('server_version') AS shown,
              current_setting('server_encoding') AS encoding`,
    );
    const [{ version, encoding, shown }] = rows;
    if (version < oldestVersion * 10_000)
      throw new DatabaseUnusableError(`The database is PostgreSQL ${shown}; ${oldestVersion} or later is needed.`);
    if (encoding !== 'UTF8')
      throw new DatabaseUnusableError(
        `The database has the encoding ${encoding}, which cannot hold every text: make one with ENCODING 'UTF8'.`,
      );
    await assertOwnSession(databaseUrl, client);
    await assertRightAge(client);
  });
}

/**
 * A pooler that lends out a server session per transaction or statement breaks LISTEN, advisory locks and settings, on
 * which the queue and the migrations depend. Two connections that share a session, or one that uses several, reveal it.
 */
async function assertOwnSession(databaseUrl: string, client: Client): Promise<void> {
  const own = new Set<number>();
  const checkSession = async (): Promise<void> => void own.add(await backendPid(client));
  for (let i = 0; i < sessionChecks; i++) await checkSession();
  await withClient(databaseUrl, async (other) => {
    const isPooledByStatement = await other
      .query({ text: 'BEGIN', query_timeout: sessionTimeoutMs } as QueryConfig)
      .then(
        () => false,
        (error: Error) => {
          if (isPoolerError(error)) return true;
          throw error;
        },
      );
    const theirs = isPooledByStatement ? undefined : await backendPid(other);
    // While the other's open transaction keeps its session, a pooler cannot lend that session again.
    if (theirs === undefined || own.has(theirs)) throw new PooledError();
    for (let i = 0; i < sessionChecks; i++) await checkSession();
    await other.query('ROLLBACK');
  });
  if (own.size > 1) throw new PooledError();
}

/**
 * A pooler in statement mode rejects a transaction; one without a second session to lend lets it wait for the driver's
 * timeout.
 */
function isPoolerError({ message }: Error): boolean {
  return /statement pooling|Query read timeout|query_wait_timeout/i.test(message);
}

class PooledError extends DatabaseUnusableError {
  constructor() {
    super(
      'DATABASE_URL leads to a pooler in transaction or statement mode, such as PgBouncer’s: the service needs sessions of its own, so name PostgreSQL itself or a pooler in session mode.',
    );
  }
}

async function backendPid(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0].pid;
}

/** @throws DatabaseUnusableError for tables from before the baseline, and for those that are too new for this build */
async function assertRightAge(client: Client): Promise<void> {
  const applied = await appliedMigrations(client);
  if (applied?.includes('Initial1795200000000'))
    throw new DatabaseUnusableError(
      'The database has the tables of an earlier version of Darkroom, which this one cannot read: a build from before 28 November 2026 can carry it over ("npm run migrate -- --carry-over"). Nothing was changed.',
    );
  const [newest] = unknownOf(applied).slice(-1);
  if (!newest) return;
  const { rows } = await client.query<{ knows: string }>('SELECT knows FROM public.oldest_builds');
  if (rows.some(({ knows }) => unknownOf([knows]).length > 0))
    throw new DatabaseUnusableError(
      `The database was migrated by a newer version of Darkroom (${newest} is not known here), and this one would do harm: run that version, or restore a backup from before.`,
    );
}

/** The migrations that only a newer version knows. */
export function unknownOf(names: readonly string[] = []): string[] {
  return names.filter((name) => !migrations.some((known) => known.name === name));
}

/** Names of our migrations in the database; undefined if it has no table of migrations. */
export async function appliedMigrations(client: Client): Promise<string[] | undefined> {
  const { rows } = await client.query<{ found: string | null }>(`SELECT to_regclass('public.migrations') AS found`);
  if (!rows[0].found) return undefined;
  const applied = await client.query<{ name: string }>('SELECT name FROM public.migrations ORDER BY id');
  return applied.rows.map(({ name }) => name);
}
