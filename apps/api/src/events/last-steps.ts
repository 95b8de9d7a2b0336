import { changeChannel, progressChannel, type StepMessage } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { Notifications } from '../http/notifications';

/**
 * Tasks whose last step is remembered: far more than are drawn at a time. The one that was heard of
 * first is forgotten first.
 */
const maxTasks = 5_000;

/**
 * The last step of each task that is being drawn. Nothing depends on it: a process knows what it has
 * heard since it started.
 */
@Injectable()
export class LastSteps {
  private readonly steps = new Map<string, number>();

  constructor(notifications: Notifications) {
    notifications.on(progressChannel, (payload) => {
      const { id, step } = JSON.parse(payload) as StepMessage;
      if (this.steps.size >= maxTasks && !this.steps.has(id)) {
        const [oldest] = this.steps.keys();
        this.steps.delete(oldest);
      }
      this.steps.set(id, step);
    });
    // Its status has changed: it has ended, or is drawn again from the beginning.
    notifications.on(changeChannel, (id) => this.steps.delete(id));
  }

  of(taskId: string): number | null {
    return this.steps.get(taskId) ?? null;
  }
}
