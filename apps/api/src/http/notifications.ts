import { type Config, CONFIG, databaseUrlOf } from '@app/config';
import { NotificationListener } from '@app/database';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';

/** PostgreSQL notifications between processes, on this process's one listening connection. */
@Injectable()
export class Notifications implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly handlers: Record<string, (payload: string) => void> = {};
  private readonly listener: NotificationListener;

  constructor(@Inject(CONFIG) config: Config, logger: JsonLogger) {
    this.listener = new NotificationListener(databaseUrlOf(config), this.handlers, (reason) =>
      logger.warnSparingly('the connection that hears of changes dropped', { reason }),
    );
  }

  /** Call it from a constructor: the channels are opened when the application starts. */
  on(channel: string, handle: (payload: string) => void): void {
    const earlier = this.handlers[channel] as ((payload: string) => void) | undefined;
    this.handlers[channel] = (payload) => {
      earlier?.(payload);
      handle(payload);
    };
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.listener.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.listener.close();
  }
}

/** The rows are read this often in case a notification was missed. */
const rereadMs = 3_000;
const readAtOnce = 500;

interface ChangedTasksInputs {
  /** Ids of all tasks that are watched in this process. */
  watched: () => Iterable<string>;
  /** Reads the rows of some tasks, and tells their watchers. */
  readRows: (ids: readonly string[]) => Promise<void>;
  /** Called after a failed read: the next one of all rows finds what it missed. */
  failed: (error: Error) => void;
}

/**
 * Reads the rows of changed tasks, one statement at a time, with all that change during the one before; and all rows
 * every few seconds.
 */
export class ChangedTasks {
  private readonly changed = new Set<string>();
  private isReading = false;
  private timer?: NodeJS.Timeout;

  constructor(private readonly inputs: ChangedTasksInputs) {}

  start(): void {
    this.timer = setInterval(() => this.add(this.inputs.watched()), rereadMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Requests a read of rows that have changed or are newly watched. */
  add(ids: Iterable<string>): void {
    for (const id of ids) this.changed.add(id);
    if (this.isReading || this.changed.size === 0) return;
    this.isReading = true;
    void this.readAll()
      .catch(this.inputs.failed)
      .finally(() => {
        this.isReading = false;
        this.add([]);
      });
  }

  private async readAll(): Promise<void> {
    while (this.changed.size > 0) {
      const ids = [...this.changed].slice(0, readAtOnce);
      for (const id of ids) this.changed.delete(id);
      await this.inputs.readRows(ids);
    }
  }
}
