import { Task } from '@app/domain';
import { queuePositions } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { loopTime } from '../defence/loop-time';

/**
 * Shortest pause between two look-ups of positions, in milliseconds; and as a multiple of the last look-up's duration.
 */
const pauseMs = 1_000;
const pausesPerLookUp = 20;
const lookUpAtOnce = 200;
/** A request waits at most this long for the next look-up. */
const longestWaitMs = 2_000;

/** Looks up the queue positions of all followed tasks together, after the queue has changed. */
@Injectable()
export class QueuePositions {
  private readonly followed = new Set<string>();
  /** Requests that wait for a task's position: no more than are served at once. */
  private readonly asked = new Map<string, Set<(position: number | null) => void>>();
  private report: (taskId: string, position: number) => void = () => undefined;
  private timer?: NodeJS.Timeout;
  private isLooking = false;
  private hasMoved = false;
  private nextAt = 0;
  private stopped = false;

  constructor(
    @InjectRepository(Task) private readonly tasks: Repository<Task>,
    private readonly logger: JsonLogger,
  ) {}

  onPosition(report: (taskId: string, position: number) => void): void {
    this.report = report;
  }

  /** Reports the position of a queued task, now and when it changes. A task that no engine draws is always next. */
  follow({ id, sandbox }: Pick<Task, 'id' | 'sandbox'>): void {
    if (sandbox) return this.report(id, 0);
    this.followed.add(id);
    this.lookAgain();
  }

  /**
   * The position of a queued task, from the next look-up: any number of requests cost no more. Null where that takes
   * too long.
   */
  of({ id, sandbox }: Pick<Task, 'id' | 'sandbox'>): Promise<number | null> {
    if (sandbox) return Promise.resolve(0);
    return new Promise((resolve) => {
      const waiting = this.asked.get(id) ?? new Set();
      const answer = (position: number | null): void => {
        clearTimeout(timer);
        waiting.delete(answer);
        if (waiting.size === 0) this.asked.delete(id);
        resolve(position);
      };
      const timer = setTimeout(answer, longestWaitMs, null);
      this.asked.set(id, waiting.add(answer));
      this.lookAgain();
    });
  }

  /** Call it when the task is no longer queued, or nobody listens. */
  forget(id: string): void {
    this.followed.delete(id);
  }

  /** Call it when a task was claimed, has ended or was requeued. */
  lookAgain(): void {
    this.hasMoved = this.followed.size + this.asked.size > 0;
    if (!this.hasMoved || this.timer || this.isLooking || this.stopped) return;
    this.timer = setTimeout(() => void this.look(), Math.max(0, this.nextAt - performance.now()));
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private async look(): Promise<void> {
    const startedAt = performance.now();
    this.timer = undefined;
    this.isLooking = true;
    this.hasMoved = false;
    try {
      const ids = [...new Set([...this.followed, ...this.asked.keys()])];
      for (let at = 0; at < ids.length && !this.stopped; at += lookUpAtOnce) {
        const positions = await queuePositions(this.tasks.manager, ids.slice(at, at + lookUpAtOnce));
        await loopTime.forEach(QueuePositions.name, [...positions], ([id, position]) => {
          for (const answer of this.asked.get(id) ?? []) answer(position);
          if (this.followed.has(id)) this.report(id, position);
        });
      }
    } catch (error) {
      // The rows are read again soon, and with them the positions.
      this.logger.debug('positions could not be looked up', { reason: (error as Error).message });
    } finally {
      const endedAt = performance.now();
      this.nextAt = endedAt + Math.max(pauseMs, pausesPerLookUp * (endedAt - startedAt));
      this.isLooking = false;
      if (this.hasMoved) this.lookAgain();
    }
  }
}
