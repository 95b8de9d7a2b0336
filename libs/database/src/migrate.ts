import { setTimeout as delay } from 'node:timers/promises';
import { BackOff } from '@app/process';
import { runMigrations as runQueueMigrations } from 'bullmq';
import type { Client } from 'pg';
import { assertUsable, withClient } from './assert-usable';
import { createDataSource } from './data-source';
import { DatabaseUnusableError } from './database-unusable-error';

/** Advisory lock under which every process migrates: "DARK" in ASCII. */
const migrationLock = 0x4441524b;
const lockPollMs = 100;

/** A change of a table waits this long for those who use it; all others who want the table wait behind it meanwhile. */
const lockTimeoutMs = 3_000;
const tries = 5;

export interface MigrateOptions {
  lockTimeoutMs?: number;
  tries?: number;
}

/**
 * Brings our tables and the queue's to the newest version. Processes that start at once wait for one another.
 * Each migration is applied whole or not at all; one that waits for a table in vain is tried again a few times.
 * @returns the names of our migrations that were applied.
 * @throws DatabaseUnusableError with the reason in one sentence.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  await assertUsable(databaseUrl);
  // The end of the session frees the lock, whatever happened.
  return withClient(databaseUrl, async (session) => {
    await takeLock(session);
    const backOff = new BackOff(1_000, 10_000);
    for (let left = options.tries ?? tries; ;) {
      try {
        return await run(databaseUrl, session, options.lockTimeoutMs ?? lockTimeoutMs);
      } catch (error) {
        const isBusy = codeOf(error) === lockNotAvailable;
        if (!isBusy || --left <= 0) throw explained(error);
        await delay(backOff.next());
      }
    }
  });
}

/** Asked for again and again, not waited for: a statement that waits would keep an index from being made concurrently. */
async function takeLock(session: Client): Promise<void> {
  for (;;) {
    const { rows } = await session.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [
      migrationLock,
    ]);
    if (rows[0].locked) return;
    await delay(lockPollMs);
  }
}

async function run(databaseUrl: string, session: Client, timeoutMs: number): Promise<string[]> {
  const dataSource = createDataSource(databaseUrl, { poolSize: 2, lockTimeoutMs: timeoutMs });
  await dataSource.initialize();
  try {
    const applied = await dataSource.runMigrations();
    await session.query(`SET lock_timeout = ${timeoutMs}`);
    await runQueueMigrations(session);
    return applied.map((migration) => migration.name);
  } finally {
    await dataSource.destroy();
  }
}

const lockNotAvailable = '55P03';

/** What whoever runs it can do something about, in one sentence. */
function explained(error: unknown): unknown {
  switch (codeOf(error)) {
    case lockNotAvailable:
      return new DatabaseUnusableError(
        'A migration waited in vain for a table that another session has locked: run it again when long transactions on this database have ended.',
      );
    case '42501':
      return new DatabaseUnusableError(
        `The user of DATABASE_URL may not make or change tables here (${(error as Error).message}): let it own the database, or GRANT CREATE ON DATABASE and ON SCHEMA public to it.`,
      );
    case '25006':
      return new DatabaseUnusableError(
        'The database is read-only, as a replica is: let DATABASE_URL lead to the primary server.',
      );
    default:
      return error;
  }
}

const codeOf = (error: unknown): string | undefined => (error as { code?: string }).code;
