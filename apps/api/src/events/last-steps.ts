import { changeChannel, progressChannel, type StepMessage } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Notifications } from '../http/notifications';

/** Far more than are drawn at a time. */
const maxTasks = 5_000;

/**
 * The last step of each task that is being drawn. Nothing depends on it: a process knows only what it has heard since
 * it started.
 */
@Injectable()
export class LastSteps {
  private readonly steps = new LRUCache<string, number>({ max: maxTasks });

  constructor(notifications: Notifications) {
    notifications.on(progressChannel, (payload) => {
      const { id, step } = JSON.parse(payload) as StepMessage;
      this.steps.set(id, step);
    });
    // Its status has changed: it has ended, or is drawn again from the beginning.
    notifications.on(changeChannel, (id) => this.steps.delete(id));
  }

  of(taskId: string): number | null {
    return this.steps.get(taskId) ?? null;
  }
}
