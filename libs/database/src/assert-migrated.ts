import { appliedMigrations, assertUsable, unknownOf, withClient } from './assert-usable';
import { NotMigratedError } from './database-unusable-error';
import { migrations } from './migrations';

/**
 * Checks, before a queue or a repository is opened, that the database is usable and has our migrations and the queue's
 * tables: without them a consumer would retry in a tight loop.
 * @param warn gets a sentence if a newer version has added to the tables in a way that this build tolerates.
 * @throws DatabaseUnusableError, or its subclass NotMigratedError
 */
export async function assertMigrated(
  databaseUrl: string,
  warn: (sentence: string) => void = () => undefined,
): Promise<void> {
  await assertUsable(databaseUrl);
  await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ queue: string | null }>(`SELECT to_regclass('bullmq.migration') AS queue`);
    const applied = await appliedMigrations(client);
    if (!applied || !rows[0].queue) throw new NotMigratedError('it has no tables');
    const missing = migrations.map(({ name }) => name).filter((name) => !applied.includes(name));
    if (missing.length > 0) throw new NotMigratedError(`${missing.join(', ')} is not applied`);
    const newer = unknownOf(applied);
    if (newer.length > 0)
      warn(`the database was migrated by a newer version, which lets this one run: ${newer.join(', ')}`);
  });
}
