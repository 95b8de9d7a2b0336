import { NotificationListener } from '@app/database';
import { stopChannel } from '@app/image-tasks';
import type { JsonLogger } from '@app/observability';

/**
 * Hears at once that a task was canceled or deleted. What is said while the connection is away is missed, and the task's
 * next heartbeat finds out.
 */
export class StopListener {
  private readonly handlers = new Map<string, () => void>();
  private readonly listener: NotificationListener;

  constructor(databaseUrl: string, logger: JsonLogger) {
    this.listener = new NotificationListener(
      databaseUrl,
      { [stopChannel]: (taskId) => this.handlers.get(taskId)?.() },
      (reason) => logger.warnSparingly('the connection that hears of cancellations dropped', { reason }),
    );
  }

  /** Resolves when it listens; rejects when the first connection fails. */
  start(): Promise<void> {
    return this.listener.start();
  }

  /** Calls `handler` when the task is to be stopped, until the returned function is called. One handler a task. */
  on(taskId: string, handler: () => void): () => void {
    this.handlers.set(taskId, handler);
    return () => {
      if (this.handlers.get(taskId) === handler) this.handlers.delete(taskId);
    };
  }

  close(): Promise<void> {
    return this.listener.close();
  }
}
