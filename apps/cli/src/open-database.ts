import { existsSync } from 'node:fs';
import type { Config } from '@app/config';
import { createDataSource, EmbeddedPostgres, migrate } from '@app/database';
import { LockHeldError, keepDataPrivate } from '@app/process';
import type { DataSource } from 'typeorm';
import { CliError } from './run-program';

const waitMs = 10_000;

/**
 * Opens the service's database for `use`: the one of DATABASE_URL, the embedded one if it is running, or else the
 * embedded one started for this call.
 * @param makesFolder whether a missing data folder is made; otherwise a wrong DATA_DIR would look like an empty service
 * @param migrates whether a database that is started for this call is migrated to this version
 * @throws CliError where there is none
 */
export async function withDatabase<T>(
  config: Config,
  use: (databaseUrl: string) => Promise<T>,
  { makesFolder = false, migrates = true } = {},
): Promise<T> {
  const { dataDir } = config;
  const url = config.databaseUrl ?? EmbeddedPostgres.runningUrl(dataDir);
  if (url) return use(url);
  if (!makesFolder && !existsSync(dataDir))
    throw new CliError(
      `There is no data folder ${dataDir}: "npm start" makes it, or DATA_DIR names another. Nothing was changed.`,
    );
  keepDataPrivate(dataDir);
  let postgres: EmbeddedPostgres;
  try {
    postgres = await EmbeddedPostgres.start(dataDir, { waitMs });
  } catch (error) {
    if (!(error instanceof LockHeldError)) throw error;
    // The service was starting at that moment.
    const startedUrl = EmbeddedPostgres.runningUrl(dataDir);
    if (!startedUrl)
      throw new Error(`The database of ${dataDir} is in use by process ${error.holder.pid}.`, { cause: error });
    return use(startedUrl);
  }
  try {
    if (migrates) await migrate(postgres.url);
    return await use(postgres.url);
  } finally {
    await postgres.stop();
  }
}

/** Connects to that database for `use`. @throws CliError where there is none */
export function withDataSource<T>(config: Config, use: (dataSource: DataSource) => Promise<T>): Promise<T> {
  return withDatabase(config, async (databaseUrl) => {
    const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
    try {
      return await use(dataSource);
    } finally {
      await dataSource.destroy();
    }
  });
}
