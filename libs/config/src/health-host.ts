import type { Config } from './config';

/**
 * Where the worker's health endpoint listens: a health check on this machine uses the loopback address; others may
 * connect only if the service listens on every address.
 */
export function healthHostOf({ host }: Pick<Config, 'host'>): string {
  return ['0.0.0.0', '::'].includes(host) ? host : '127.0.0.1';
}
