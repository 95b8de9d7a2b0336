import { runMigrations as runQueueMigrations } from 'bullmq';
import { Client } from 'pg';
import { createDataSource } from './data-source';

/** Advisory lock under which every process migrates: "DARK" in ASCII. */
const migrationLock = 0x4441524b;

/**
 * Brings our tables and the queue's to the newest version. Processes that start at once wait for one another.
 * A failed migration leaves the schema as it was.
 * @returns the names of our migrations that were applied.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const lock = new Client({ connectionString: databaseUrl });
  await lock.connect();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [migrationLock]);
    const dataSource = createDataSource(databaseUrl, { poolSize: 2 });
    await dataSource.initialize();
    try {
      const applied = await dataSource.runMigrations();
      await runQueueMigrations(lock);
      return applied.map((migration) => migration.name);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    // Ending the session frees the lock, whatever happened.
    await lock.end();
  }
}
