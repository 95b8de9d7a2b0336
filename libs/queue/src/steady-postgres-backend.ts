import { SteadyClient } from '@app/database';
import type { BackendFactory, PostgresConnectionOptions } from 'bullmq';
import { PostgresConnection, PostgresQueueBackend } from 'bullmq';

/**
 * BullMQ's PostgreSQL back end, for a process that outlives its database. Its first connection attempt may fail, because the
 * process was suspended or the database was starting. BullMQ keeps that failure for good, and the process would never take a job
 * again; here the next use connects again. BullMQ also listens for errors of its LISTEN connection too late and stops too early;
 * an error outside that time would end the process.
 */
export const createSteadyPostgresBackend: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection } = {},
) => {
  const connection = new SteadyConnection(options.connection);
  // The application name of a worker's connection is its queue's name.
  return new SteadyBackend(connection, name, options, true, withBlockingConnection ? name : undefined);
};

class SteadyConnection extends PostgresConnection {
  constructor(connection: PostgresConnectionOptions) {
    super(connection);
    // BullMQ makes both its pool and its LISTEN connection with the `Client` of the pool's options.
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

/** @throws the error of the connection attempt */
function forgetTry(of: object, error: Error): never {
  (of as { readyPromise?: Promise<void> }).readyPromise = undefined;
  throw error;
}
