import type { ImageTask } from '@app/domain';
import { postponedUntil, progressChannel } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

const intervalMs = 100;
/** Steps of one key per statement, its tasks in turn; a step that comes too late is skipped. */
const stepsPerKey = 50;
/** Tasks of one key, and of all keys, whose steps are published. The others are settled in time without steps. */
const tasksPerKey = 1_000;
const tasksInAll = 20_000;

/** A task whose steps are spread over a period, in milliseconds since the epoch. */
export interface PacedTask extends Pick<ImageTask, 'id' | 'ownerId' | 'attempt' | 'steps'> {
  startAt: number;
  endAt: number;
}

interface TaskInProgress extends PacedTask {
  /** Steps published so far. */
  published: number;
}

/**
 * Publishes the steps of delayed sandbox tasks, all of them with one statement at intervals. Nothing depends on it: the
 * tasks' jobs settle them. A process that starts takes over tasks of another that may be gone; a step that is published
 * twice is ignored the second time.
 */
@Injectable()
export class StepPublisher implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /** The tasks of each key. */
  private readonly keys = new Map<string, Map<string, TaskInProgress>>();
  private count = 0;
  private timer?: NodeJS.Timeout;
  private publishing?: Promise<void>;

  constructor(
    private readonly dataSource: DataSource,
    private readonly logger: JsonLogger,
  ) {}

  onApplicationBootstrap(): void {
    this.takeOver().catch((error: Error) =>
      this.logger.warn('steps of earlier sandbox tasks are not published', { reason: error.message }),
    );
  }

  /** Publishes the steps of a task from now on, except the last, which comes with the pictures. */
  add(task: PacedTask): void {
    const tasks = this.keys.get(task.ownerId) ?? new Map<string, TaskInProgress>();
    if (!tasks.has(task.id) && (tasks.size >= tasksPerKey || this.count >= tasksInAll)) return;
    if (!tasks.has(task.id)) this.count++;
    this.keys.set(task.ownerId, tasks.set(task.id, { ...task, published: 0 }));
    this.timer ??= setInterval(() => this.tick(), intervalMs).unref();
  }

  /** Whether the steps of a task are published here. */
  has(id: string): boolean {
    return [...this.keys.values()].some((tasks) => tasks.has(id));
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.publishing;
  }

  private async takeOver(): Promise<void> {
    const rows = await this.dataSource.query<(Omit<PacedTask, 'startAt' | 'endAt'> & { start: Date; end: Date })[]>(
      `SELECT id, owner_id AS "ownerId", attempt, steps, created_at AS start, ${postponedUntil} AS end
       FROM image_tasks WHERE sandbox AND status = 'processing' AND heartbeat_at > now() ORDER BY created_at LIMIT $1`,
      [tasksInAll],
    );
    for (const { start, end, ...task } of rows) this.add({ ...task, startAt: start.getTime(), endAt: end.getTime() });
  }

  /** If a round takes longer than the interval, no second one starts. */
  private tick(): void {
    this.publishing ??= this.publish()
      .catch((error: Error) => this.logger.warn('steps of sandbox tasks were not published', { reason: error.message }))
      .finally(() => (this.publishing = undefined));
  }

  private async publish(): Promise<void> {
    const due = [...this.keys.values()].flatMap((tasks) => this.dueOf(tasks, Date.now()));
    if (due.length > 0) {
      // A task that was canceled, deleted or taken over is skipped, and forgotten.
      const live = await this.dataSource.query<{ id: string }[]>(
        `SELECT task.id, pg_notify($1, message)
         FROM unnest($2::text[], $3::integer[], $4::text[]) WITH ORDINALITY AS due (id, attempt, message, place)
         JOIN image_tasks task ON task.id = due.id AND task.attempt = due.attempt AND task.status = 'processing'
         ORDER BY place`,
        [
          progressChannel,
          due.map(({ task }) => task.id),
          due.map(({ task }) => task.attempt),
          due.map(({ task: { id, attempt, steps: total }, step }) => JSON.stringify({ id, attempt, step, total })),
        ],
      );
      const found = new Set(live.map(({ id }) => id));
      for (const { task } of due) if (!found.has(task.id)) this.drop(task);
    }
    if (this.count > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private dueOf(tasks: Map<string, TaskInProgress>, now: number): { task: TaskInProgress; step: number }[] {
    const due: { task: TaskInProgress; step: number }[] = [];
    for (const task of [...tasks.values()]) {
      const last = Math.min(stepAt(task, now), task.steps - 1);
      if (due.length < stepsPerKey && last > task.published) {
        const from = Math.max(task.published + 1, last - (stepsPerKey - due.length) + 1);
        for (let step = from; step <= last; step++) due.push({ task, step });
        task.published = last;
        // Moves the task behind the key's others, for the next round.
        tasks.delete(task.id);
        tasks.set(task.id, task);
      }
      if (now >= task.endAt || task.published >= task.steps - 1) this.drop(task);
    }
    return due;
  }

  private drop({ id, ownerId }: TaskInProgress): void {
    const tasks = this.keys.get(ownerId);
    if (!tasks?.delete(id)) return;
    this.count--;
    if (tasks.size === 0) this.keys.delete(ownerId);
  }
}

function stepAt({ startAt, endAt, steps }: PacedTask, at: number): number {
  return Math.max(0, Math.floor(((at - startAt) * steps) / (endAt - startAt)));
}
