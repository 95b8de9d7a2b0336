import type { Config } from '@app/config';
import type { JobBackEnd } from './job-back-end';
import { PostgresBackEnd } from './postgres-back-end';
import { RedisBackEnd } from './redis-back-end';

/** Opens the back end that the configuration names. */
export function openJobBackEnd(
  config: Pick<Config, 'queueBackend' | 'redisUrl'>,
  databaseUrl: string,
  onError: (error: Error) => void,
): JobBackEnd {
  return config.queueBackend === 'redis'
    ? new RedisBackEnd(config.redisUrl ?? '', onError)
    : new PostgresBackEnd(databaseUrl, onError);
}
