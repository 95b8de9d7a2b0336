import { BackOff } from '@app/process';
import { Client } from 'pg';
import { sessionSettings } from './pool-options';

/** After a connection of this length, the next reconnect starts with the shortest wait again. */
const healthyMs = 30_000;

/**
 * Receives PostgreSQL's notifications on a connection of its own, and reconnects when that drops. Notifications are
 * lost meanwhile: whoever depends on a state also reads its row.
 */
export class NotificationListener {
  private client?: Client;
  private listeningSince = 0;
  private opening?: Promise<void>;
  private retry?: NodeJS.Timeout;
  private closed = false;
  private readonly backOff = new BackOff(1_000, 30_000);

  /**
   * @param handlers by channel; each receives the payload.
   * @param onDropped called each time the connection drops.
   */
  constructor(
    private readonly databaseUrl: string,
    private readonly handlers: Readonly<Record<string, (payload: string) => void>>,
    private readonly onDropped: (reason: string) => void,
  ) {}

  /** Resolves when it is listening; rejects when the first connection fails. */
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

  /** Resolves when no connection is left, including one that is being opened. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.retry);
    // The driver never settles the promise of a connection that is ended while it opens. So this waits for the
    // connection, which then ends itself.
    await this.opening?.catch(() => undefined);
    await this.client?.end();
  }

  private async listenOn(client: Client): Promise<void> {
    try {
      await client.connect();
      await client.query(sessionSettings());
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
    if (performance.now() - this.listeningSince > healthyMs) this.backOff.reset();
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
