import { SteadyClient } from '@app/database';
import type { BackendFactory, PostgresConnectionOptions } from 'bullmq';
import { PostgresConnection, PostgresQueueBackend } from 'bullmq';

/**
 * BullMQ's PostgreSQL for a process that outlives its database. Its first try to reach it may fail: the process stood still just then,
 * or the database was starting. BullMQ keeps that try and its failure for good, and the process would never take a job again; here the
 * next use tries anew. And BullMQ hears of errors of the connection that listens only from a moment after it was made until it is to be
 * closed; one that is lost just then would end the process.
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
  constructor(connection: PostgresConnectionOptions) {
    super(connection);
    // It makes its pool with the client of the pool's options, and the connection that listens with this one.
    Object.assign(this, { pgModule: { Client: SteadyClient } });
  }

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
