import { progressChannel, type StepMessage } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { Notifications } from '../http/notifications';

type Take = (jpeg: string, index: number) => void;

interface Wanted {
  count: number;
  sent: number;
  take: Take;
}

/** Pictures of steps, on their way to streams of this process. */
@Injectable()
export class PartialImages {
  private readonly wanted = new Map<string, Set<Wanted>>();

  constructor(notifications: Notifications) {
    notifications.on(progressChannel, (payload) => this.step(payload));
  }

  /**
   * Gives the pictures of at most `count` steps of a task, evenly spread over them, as JPEG in base64.
   * @returns a function that stops it
   */
  follow(taskId: string, count: number, take: Take): () => void {
    const own = this.wanted.get(taskId) ?? new Set();
    const wanted = { count, sent: 0, take };
    this.wanted.set(taskId, own.add(wanted));
    return () => {
      own.delete(wanted);
      if (own.size === 0 && this.wanted.get(taskId) === own) this.wanted.delete(taskId);
    };
  }

  private step(payload: string): void {
    if (this.wanted.size === 0) return;
    const { id, step, total, preview } = JSON.parse(payload) as StepMessage;
    if (preview === undefined || step >= total) return;
    for (const each of this.wanted.get(id) ?? [])
      if (each.sent < each.count && step * (each.count + 1) >= total * (each.sent + 1)) each.take(preview, each.sent++);
  }
}
