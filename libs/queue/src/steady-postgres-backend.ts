import type { BackendFactory, PostgresConnectionOptions } from 'bullmq';
import { PostgresConnection, PostgresQueueBackend } from 'bullmq';

/**
 * BullMQ's PostgreSQL for a process whose first try to reach the database may fail: it stood still just then, or the database was
 * starting. BullMQ keeps that try and its failure for good, and the process would never take a job again; here the next use tries anew.
 */
export const createSteadyPostgresBackend: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection } = {},
) => {
  const connection = new SteadyConnection(options.connection);
  // A worker's connection is known by its queue's name.
  return new SteadyBackend(connection, name, options, true, withBlockingConnection ? name : undefined);
};

class SteadyConnection extends PostgresConnection {
  override async waitUntilReady(): Promise<void> {
    await super.waitUntilReady().catch((error: Error) => forgetTry(this, error));
  }
}

class SteadyBackend extends PostgresQueueBackend {
  override async waitUntilReady(): Promise<void> {
    await super.waitUntilReady().catch((error: Error) => forgetTry(this, error));
  }
}

/** @throws what the try came to */
function forgetTry(of: object, error: Error): never {
  (of as { readyPromise?: Promise<void> }).readyPromise = undefined;
  throw error;
}
