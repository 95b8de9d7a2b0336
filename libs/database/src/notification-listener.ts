import { Client } from 'pg';

const reconnectDelayMs = 1_000;

/**
 * Hears PostgreSQL's notifications on a connection of its own, and comes back when that drops. What is said while it is away
 * is missed: whoever depends on a state reads it from its row as well.
 */
export class NotificationListener {
  private client?: Client;
  private retry?: NodeJS.Timeout;
  private closed = false;

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
  async start(): Promise<void> {
    const client = new Client({
      connectionString: this.databaseUrl,
      application_name: 'darkroom-listen',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    });
    client.on('error', (error) => this.drop(client, error.message));
    client.on('end', () => this.drop(client, 'ended'));
    client.on('notification', ({ channel, payload }) => this.handlers[channel]?.(payload ?? ''));
    await client.connect();
    for (const channel of Object.keys(this.handlers)) await client.query(`LISTEN ${channel}`);
    this.client = client;
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.retry);
    await this.client?.end();
  }

  private drop(client: Client, reason: string): void {
    if (this.closed || this.client !== client) return;
    this.client = undefined;
    this.onDropped(reason);
    client.end().catch(() => undefined);
    this.connectLater();
  }

  private connectLater(): void {
    this.retry = setTimeout(() => {
      this.start().catch(() => {
        if (!this.closed) this.connectLater();
      });
    }, reconnectDelayMs);
  }
}
