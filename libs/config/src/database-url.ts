import type { Config } from './config';
import { ConfigError } from './load-config';

/** The address of the database; the launcher passes the embedded one's. @throws ConfigError */
export function databaseUrlOf(config: Config): string {
  if (!config.databaseUrl) throw new ConfigError(['DATABASE_URL is needed; "npm start" brings a database of its own.']);
  return config.databaseUrl;
}
