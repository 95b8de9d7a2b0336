import type { Config } from '@app/config';
import { ImageTaskLifeCycle, keyChannel } from '@app/image-tasks';
import { openJobBackEnd, Transactions } from '@app/queue';
import type { DataSource } from 'typeorm';

/** Cancels all that a key has waiting or being drawn; its webhooks go out as ever. @returns how many. */
export async function cancelWork(
  config: Config,
  databaseUrl: string,
  dataSource: DataSource,
  keyId: string,
): Promise<number> {
  // What a queue that is away does not take is the api's sweeper's to add.
  const ignore = (): void => undefined;
  const jobs = openJobBackEnd(config, databaseUrl, ignore);
  try {
    return await new ImageTaskLifeCycle(new Transactions(dataSource, jobs, ignore)).cancelAll(keyId);
  } finally {
    await jobs.close();
  }
}

/** Refuses a key from now on, and tells the apis, which close what it has open. */
export async function revokeKey(dataSource: DataSource, keyId: string): Promise<void> {
  await dataSource.query(
    `WITH revoked AS (UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING id)
     SELECT pg_notify($2, id) FROM revoked`,
    [keyId, keyChannel],
  );
}
