import { type Config, CONFIG, databaseUrlOf } from '@app/config';
import { NotificationListener } from '@app/database';
import { stopChannel } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';

/**
 * Receives notifications of canceled and deleted tasks. A notification is lost while the connection is down; then the
 * task's next heartbeat finds out.
 */
@Injectable()
export class StopListener implements OnModuleInit {
  private readonly handlers = new Map<string, () => void>();
  private readonly listener: NotificationListener;

  constructor(@Inject(CONFIG) config: Config, logger: JsonLogger) {
    this.listener = new NotificationListener(
      databaseUrlOf(config),
      { [stopChannel]: (taskId) => this.handlers.get(taskId)?.() },
      (reason) => logger.warnSparingly('the connection for cancellations dropped', { reason }),
    );
  }

  /** Resolves when it is listening; rejects when the first connection fails. */
  onModuleInit(): Promise<void> {
    return this.listener.start();
  }

  /** Calls `handler` when the task is to be stopped, until the returned function is called. One handler per task. */
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
