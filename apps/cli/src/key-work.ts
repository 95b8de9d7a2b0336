import type { Config } from '@app/config';
import { cancelAll } from '@app/tasks';
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
    return await cancelAll(new Transactions(dataSource, jobs, ignore), keyId);
  } finally {
    await jobs.close();
  }
}
