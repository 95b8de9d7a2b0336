import type { Config } from './config';

/** The address of the database; the launcher passes the embedded one's. */
export function databaseUrlOf(config: Config): string {
  if (!config.databaseUrl) throw new Error('DATABASE_URL is needed; "npm start" brings a database of its own.');
  return config.databaseUrl;
}
