import { setTimeout as delay } from 'node:timers/promises';
import type { BackendFactory, IRedisClient, RedisQueueBackend } from 'bullmq';
import { createRedisBackend } from 'bullmq';
import { withMethods } from './bullmq-internals';

/** How long a closing worker waits for a connection that was never made. */
const timeoutMs = 1_000;

/**
 * BullMQ's Redis back end, for workers that can be closed while Redis is away. BullMQ disconnects the
 * connection that waits for jobs and then waits for its end, which ioredis does not report for a connection
 * that is between two reconnects.
 */
export const createClosableRedisBackend: BackendFactory<RedisQueueBackend> = (...parameters) => {
  const backend = createRedisBackend(...parameters);
  // A worker calls it only when it closes.
  const disconnectBlocking = async (wait?: boolean): Promise<void> => {
    const late = delay(timeoutMs, undefined, { ref: false });
    const clients = await Promise.race([Promise.all([backend.blockingClient, backend.client]), late]);
    if (!clients) throw new Error('Redis was not reached before the end.');
    await Promise.all(clients.map(stopReconnecting));
    await backend.disconnectBlocking(wait);
  };
  return withMethods(backend, { disconnectBlocking });
};

/**
 * Tries to connect one last time if the connection is lost; if that fails, the connection has ended, and so has every
 * command that waits for it.
 */
async function stopReconnecting(client: IRedisClient | undefined): Promise<void> {
  if (!client) return;
  // BullMQ listens to its errors no longer when it is closed, and ioredis prints errors that nobody listens to.
  client.on('error', () => undefined);
  client.options.retryStrategy = undefined;
  if (client.status === 'reconnecting') await client.connect().catch(() => undefined);
}
