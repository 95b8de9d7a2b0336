import type { Config } from '@app/config';
import { NotificationListener } from '@app/database';
import { ImageTask } from '@app/domain';
import { JsonLogger } from '@app/logging';
import type { StepMessage } from '@app/queue';
import { changeChannel, progressChannel, queuePosition } from '@app/queue';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { CONFIG } from '../config.token';
import { databaseUrlOf } from '../infrastructure/infrastructure.module';
import { Drain } from '../shutdown/drain';

/** Hears of one task. */
export interface TaskWatcher {
  onStep(step: StepMessage): void;
  /** Its status may have changed: read it. */
  onChange(): void;
  /** The process ends. */
  onEnd(): void;
}

/** Hands what the processes tell of tasks to those who watch them, whichever api process they are connected to. */
@Injectable()
export class TaskEventsService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly watchers = new Map<string, Set<TaskWatcher>>();
  private readonly listener: NotificationListener;

  constructor(
    @InjectRepository(ImageTask) private readonly tasks: Repository<ImageTask>,
    @Inject(CONFIG) config: Config,
    private readonly drain: Drain,
    logger: JsonLogger,
  ) {
    // A stream that ends is opened again by its client, at another process; one that did not end would keep this one.
    drain.onBegin(() => {
      for (const group of this.watchers.values()) for (const watcher of group) watcher.onEnd();
    });
    this.listener = new NotificationListener(
      databaseUrlOf(config),
      {
        [changeChannel]: (id) => this.each(id, (watcher) => watcher.onChange()),
        [progressChannel]: (payload) => {
          const step = JSON.parse(payload) as StepMessage;
          this.each(step.id, (watcher) => watcher.onStep(step));
        },
      },
      (reason) => logger.warnSparingly('the connection that hears of progress dropped', { reason }),
    );
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.listener.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.listener.close();
  }

  /** @returns a function that ends the watch. */
  watch(taskId: string, watcher: TaskWatcher): () => void {
    const group = this.watchers.get(taskId) ?? new Set();
    this.watchers.set(taskId, group.add(watcher));
    if (this.drain.isDraining) setImmediate(() => watcher.onEnd());
    return () => {
      group.delete(watcher);
      if (group.size === 0) this.watchers.delete(taskId);
    };
  }

  /** How many tasks are likely to be drawn before this one, itself excluded; 0 for the next and for one that no engine draws. */
  async queuePosition(task: ImageTask): Promise<number> {
    return task.sandbox ? 0 : queuePosition(this.tasks.manager, task);
  }

  private each(id: string, tell: (watcher: TaskWatcher) => void): void {
    for (const watcher of this.watchers.get(id) ?? []) tell(watcher);
  }
}
