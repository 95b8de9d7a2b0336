import { BackOff } from '@app/process';
import { Client } from 'pg';

/** A connection that held for so long was sound: the wait before the next one is the shortest again. */
const steadyMs = 30_000;

/**
 * Hears PostgreSQL's notifications on a connection of its own, and comes back when that drops. What is said while it is away
 * is missed: whoever depends on a state reads it from its row as well.
 */
export class NotificationListener {
  private client?: Client;
  private listeningSince = 0;
  private opening?: Promise<void>;
  private retry?: NodeJS.Timeout;
  private closed = false;
  private readonly backOff = new BackOff(1_000, 30_000);

  /**
   * @param handlers what to do with a payload, by channel.
   * @param onDropped told each time the connection drops.
   */
  constructor(
    private readonly databaseUrl: string,
    private readonly handlers: Readonly<Record<string, (payload: string) => void>>,
    private readonly onDropped: (reason: string) => void,
  ) {}

  /** Resolves when it listens; rejects when the first connection fails. */
  start(): Promise<void> {
    const client = new Client({
      connectionString: this.databaseUrl,
      application_name: 'darkroom-listen',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    });
    client.on('error', (error) => this.drop(client, error.message));
    client.on('end', () => this.drop(client, 'ended'));
    client.on('notification', ({ channel, payload }) => this.handlers[channel]?.(payload ?? ''));
    this.opening = this.listenOn(client).finally(() => (this.opening = undefined));
    return this.opening;
  }

  /** Resolves when no connection is left, one that is just being made included. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.retry);
    // The driver never settles a connection that is ended while it is made: it is waited for, and ends itself.
    await this.opening?.catch(() => undefined);
    await this.client?.end();
  }

  private async listenOn(client: Client): Promise<void> {
    try {
      await client.connect();
      for (const channel of Object.keys(this.handlers)) if (!this.closed) await client.query(`LISTEN ${channel}`);
      if (this.closed) throw new Error('The listener was closed.');
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    this.client = client;
    this.listeningSince = performance.now();
  }

  private drop(client: Client, reason: string): void {
    if (this.closed || this.client !== client) return;
    this.client = undefined;
    this.onDropped(reason);
    client.end().catch(() => undefined);
    if (performance.now() - this.listeningSince > steadyMs) this.backOff.reset();
    this.connectLater();
  }

  private connectLater(): void {
    this.retry = setTimeout(() => {
      this.start().catch(() => {
        if (!this.closed) this.connectLater();
      });
    }, this.backOff.next());
  }
}
