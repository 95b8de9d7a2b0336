import { setTimeout as delay } from 'node:timers/promises';
import { BackOff } from '@app/process';
import { runMigrations as runQueueMigrations } from 'bullmq';
import type { Client } from 'pg';
import { assertUsable, withClient } from './assert-usable';
import { createDataSource } from './data-source';
import { DatabaseUnusableError } from './database-unusable-error';

/** Advisory lock for migrations, shared by all processes: "DARK" in ASCII. */
const migrationLock = 0x4441524b;
const lockPollMs = 100;

/** Longest wait of a schema change for a table lock: everyone else who wants the table waits behind it. */
const lockTimeoutMs = 3_000;
const tries = 5;

export interface MigrateOptions {
  lockTimeoutMs?: number;
  tries?: number;
}

/**
 * Brings our tables and the queue's to the newest version. Processes that start at once wait for one another. Each
 * migration is applied whole or not at all; one that cannot get its locks is retried a few times.
 * @returns the names of our migrations that were applied.
 * @throws DatabaseUnusableError with the reason in one sentence.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  await assertUsable(databaseUrl);
  // The end of the session frees the lock in every case.
  return withClient(databaseUrl, async (session) => {
    await takeMigrationLock(session);
    const backOff = new BackOff(1_000, 10_000);
    for (let left = options.tries ?? tries; ;) {
      try {
        return await run(databaseUrl, session, options.lockTimeoutMs ?? lockTimeoutMs);
      } catch (error) {
        const isBusy = [lockNotAvailable, deadlockDetected].includes(codeOf(error) ?? '');
        if (!isBusy || --left <= 0) throw explained(error);
        await delay(backOff.next());
      }
    }
  });
}

/**
 * Keeps migrations out until the session ends. It polls the lock: a waiting statement would block an index that is
 * built concurrently.
 */
export async function takeMigrationLock(session: Client): Promise<void> {
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
/** PostgreSQL ended the migration so that another session, which waited for it as it did for that one, goes on. */
const deadlockDetected = '40P01';

function explained(error: unknown): unknown {
  switch (codeOf(error)) {
    case lockNotAvailable:
    case deadlockDetected:
      return new DatabaseUnusableError(
        'A migration waited in vain for a table that another session has locked: run it again when long transactions on this database have ended.',
      );
    case '42501':
      return new DatabaseUnusableError(
        `The user of DATABASE_URL may not make or change tables here (${(error as Error).message}): let it own the database, or GRANT CREATE ON DATABASE and ON SCHEMA public to it.`,
      );
    case '25006':
      return new DatabaseUnusableError(
        'The database is read-only: let DATABASE_URL lead to the primary server, if this is a replica, or take back default_transaction_read_only of the database or its user.',
      );
    default:
      return error;
  }
}

const codeOf = (error: unknown): string | undefined => (error as { code?: string }).code;
