import { stopChannel } from '@app/queue';
import type { JsonLogger } from '@app/logging';
import { Client } from 'pg';

const reconnectDelayMs = 2_000;

/**
 * Hears at once that a task was canceled or deleted, on a connection of its own. It comes back when it drops; what is said
 * meanwhile is missed, and the task's next heartbeat finds out.
 */
export class StopListener {
  private readonly handlers = new Map<string, () => void>();
  private client?: Client;
  private retry?: NodeJS.Timeout;
  private closed = false;

  constructor(
    private readonly databaseUrl: string,
    private readonly logger: JsonLogger,
  ) {}

  /** Resolves when it listens; rejects when the first connection fails. */
  async start(): Promise<void> {
    const client = new Client({
      connectionString: this.databaseUrl,
      application_name: 'darkroom-stop',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    });
    client.on('error', (error) => this.reconnect(client, error));
    client.on('end', () => this.reconnect(client));
    client.on('notification', ({ payload }) => this.handlers.get(payload ?? '')?.());
    await client.connect();
    await client.query(`LISTEN ${stopChannel}`);
    this.client = client;
  }

  /** Calls `handler` when the task is to be stopped, until the returned function is called. One handler a task. */
  on(taskId: string, handler: () => void): () => void {
    this.handlers.set(taskId, handler);
    return () => {
      if (this.handlers.get(taskId) === handler) this.handlers.delete(taskId);
    };
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.retry);
    await this.client?.end();
  }

  private reconnect(client: Client, error?: Error): void {
    if (this.closed || this.client !== client) return;
    this.client = undefined;
    this.logger.warn('the connection that hears of cancellations dropped', { reason: error?.message ?? 'ended' });
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
