import type { Config } from '@app/config';
import { ImageTaskLifeCycle, keyChannel } from '@app/image-tasks';
import { openJobBackEnd, Transactions } from '@app/queue';
import type { DataSource } from 'typeorm';

/** Cancels everything that a key has waiting or being drawn; its webhooks are still sent. @returns how many. */
export async function cancelWork(
  config: Config,
  databaseUrl: string,
  dataSource: DataSource,
  keyId: string,
): Promise<number> {
  // If the queue is away, the api's sweeper adds the jobs.
  const ignore = (): void => undefined;
  const jobs = openJobBackEnd(config, databaseUrl, ignore);
  try {
    return await new ImageTaskLifeCycle(new Transactions(dataSource, jobs, ignore)).cancelAll(keyId);
  } finally {
    await jobs.close();
  }
}

/** Revokes a key and notifies the api processes, which close what it has open. */
export async function revokeKey(dataSource: DataSource, keyId: string): Promise<void> {
  await dataSource.query(
    `WITH revoked AS (UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING id)
     SELECT pg_notify($2, id) FROM revoked`,
    [keyId, keyChannel],
  );
}
