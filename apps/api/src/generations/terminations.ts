import { Task, terminatedStatuses } from '@app/domain';
import { changeChannel } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Not, Repository } from 'typeorm';
import { ChangedTasks, Notifications } from '../http/notifications';
import { Drain } from '../http/drain';

/** Tells requests of this process when a task has terminated: one statement reads many candidates. */
@Injectable()
export class Terminations implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly waiting = new Map<string, Set<() => void>>();
  private readonly changed: ChangedTasks;
  private isEnding = false;

  constructor(
    @InjectRepository(Task) private readonly tasks: Repository<Task>,
    logger: JsonLogger,
    notifications: Notifications,
    drain: Drain,
  ) {
    this.changed = new ChangedTasks({
      watched: () => this.waiting.keys(),
      readRows: (ids) => this.readRows(ids),
      failed: ({ message }) => logger.debug('tasks that are waited for could not be read', { reason: message }),
    });
    notifications.on(changeChannel, (id) => {
      if (this.waiting.has(id)) this.changed.add([id]);
    });
    // Waiting callers get their answer now, and may ask another process.
    drain.onBegin(() => {
      this.isEnding = true;
      for (const id of [...this.waiting.keys()]) this.endWaits(id);
    });
  }

  onApplicationBootstrap(): void {
    this.changed.start();
  }

  beforeApplicationShutdown(): void {
    this.changed.stop();
  }

  /**
   * Resolves when a task has terminated or is gone, when `signal` aborts, when the process begins to end, and after
   * `ms` at the latest.
   */
  until(taskId: string, ms: number, signal: AbortSignal): Promise<void> {
    if (this.isEnding || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const own = this.waiting.get(taskId) ?? new Set();
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        own.delete(end);
        if (own.size === 0 && this.waiting.get(taskId) === own) this.waiting.delete(taskId);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
      this.waiting.set(taskId, own.add(end));
      // It may have terminated before this wait began.
      this.changed.add([taskId]);
    });
  }

  private endWaits(taskId: string): void {
    for (const end of [...(this.waiting.get(taskId) ?? [])]) end();
  }

  private async readRows(ids: readonly string[]): Promise<void> {
    const open = await this.tasks.find({
      select: { id: true },
      where: { id: In(ids), status: Not(In([...terminatedStatuses])) },
    });
    const openIds = new Set(open.map(({ id }) => id));
    for (const id of ids) if (!openIds.has(id)) this.endWaits(id);
  }
}
