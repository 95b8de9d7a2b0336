import { SteadyClient } from '@app/database';
import type { BackendFactory, PostgresConnectionOptions } from 'bullmq';
import { PostgresConnection, PostgresQueueBackend } from 'bullmq';
import { forgetFirstAttempt, forgetListenClient, listenWithSteadyClient } from './bullmq-internals';

/**
 * BullMQ's PostgreSQL back end, for a process that outlives its database. Its first connection attempt may fail,
 * because the process was suspended or the database was starting. BullMQ keeps that failure for good, and the process
 * would never take a job again; here the next use connects again. BullMQ also listens for errors of its LISTEN
 * connection too late and stops too early; an error outside that time would end the process. If that connection is lost
 * at the very moment in which it subscribes, BullMQ takes it for subscribed and may wait an hour for a notification
 * that cannot come; here the end of the connection always ends the wait, and no wait is longer than ten seconds.
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

/** Longest wait for a notification, in seconds: then the queue is asked in any case. */
const longestWaitSeconds = 10;

class SteadyConnection extends PostgresConnection {
  private listenClientInUse?: SteadyClient;

  constructor(connection: PostgresConnectionOptions) {
    super(connection);
    listenWithSteadyClient(this);
  }

  override async getListenClient(): ReturnType<PostgresConnection['getListenClient']> {
    const client = await super.getListenClient();
    if (!(client instanceof SteadyClient) || client === this.listenClientInUse) return client;
    if (client.isLost) {
      forgetListenClient(this);
      throw new Error('The connection that hears of jobs was lost while it was made.');
    }
    this.listenClientInUse = client;
    client.once('end', () => {
      this.listenClientInUse = undefined;
      this.emit('listenerinvalidated');
    });
    return client;
  }

  override async waitUntilReady(): Promise<void> {
    await super.waitUntilReady().catch((error: Error) => forgetTry(this, error));
  }
}

class SteadyBackend extends PostgresQueueBackend {
  override get maximumBlockTimeout(): number {
    return longestWaitSeconds;
  }

  override async waitUntilReady(): Promise<void> {
    await super.waitUntilReady().catch((error: Error) => forgetTry(this, error));
  }
}

/** @throws the error of the connection attempt */
function forgetTry(of: PostgresConnection | PostgresQueueBackend, error: Error): never {
  forgetFirstAttempt(of);
  throw error;
}
