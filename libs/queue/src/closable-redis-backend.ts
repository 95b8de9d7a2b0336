import { setTimeout as delay } from 'node:timers/promises';
import type { BackendFactory, IRedisClient, RedisQueueBackend } from 'bullmq';
import { createRedisBackend } from 'bullmq';

/** A worker that closes waits this long for a connection that was never made. */
const patienceMs = 1_000;

/**
 * BullMQ's Redis for workers that can be closed while Redis is away. BullMQ disconnects the connection that waits for jobs and
 * then waits for its end, which ioredis does not tell of one that rests between two tries to connect.
 */
export const createClosableRedisBackend: BackendFactory<RedisQueueBackend> = (...parameters) => {
  const backend = createRedisBackend(...parameters);
  const disconnectBlocking = backend.disconnectBlocking.bind(backend);
  // A worker calls it when it closes, and never else.
  backend.disconnectBlocking = async (wait) => {
    const late = delay(patienceMs, undefined, { ref: false });
    const clients = await Promise.race([Promise.all([backend.blockingClient, backend.client]), late]);
    if (!clients) throw new Error('Redis was not reached before the end.');
    await Promise.all(clients.map(stopReconnecting));
    await disconnectBlocking(wait);
  };
  return backend;
};

/** Tries to connect a last time where the connection is lost; when that fails, it has ended, and so has every command that waits for it. */
async function stopReconnecting(client: IRedisClient | undefined): Promise<void> {
  if (!client) return;
  client.options.retryStrategy = undefined;
  if (client.status === 'reconnecting') await client.connect().catch(() => undefined);
}
