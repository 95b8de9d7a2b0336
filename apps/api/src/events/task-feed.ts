import { Task, isTerminated, NotFoundError } from '@app/domain';
import { changeChannel, progressChannel, type StepMessage } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { ChangedTasks, Notifications } from '../http/notifications';
import { Drain } from '../http/drain';
import { type Advance, endFrame, type EventStream, stepFrames } from './event-stream';
import { frame } from '../http/server-sent-events';
import { loopTime } from '../defence/loop-time';
import { QueuePositions } from './queue-positions';

const heartbeatMs = 15_000;

/** A task that a stream follows. */
export interface FollowedTask {
  id: string;
  /** The record as GET returns it. */
  readRecord: () => Promise<unknown>;
  /** How far it is; for tasks whose first step may take long. Undefined for one without steps. */
  readAdvance?: () => Promise<Advance | undefined>;
}

interface Followed extends FollowedTask {
  streams: Set<EventStream>;
}

type TaskState = Pick<Task, 'id' | 'status' | 'attempt' | 'sandbox'>;

/**
 * Sends the changes of tasks to all event streams of this process. It receives a change once, reads the rows of all
 * changed tasks in one statement, and serialises each event once for all streams of a task.
 */
@Injectable()
export class TaskFeed implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly tasks = new Map<string, Followed>();
  private readonly changed: ChangedTasks;
  private heartbeat?: NodeJS.Timeout;

  constructor(
    @InjectRepository(Task) private readonly rows: Repository<Task>,
    private readonly positions: QueuePositions,
    private readonly drain: Drain,
    logger: JsonLogger,
    notifications: Notifications,
  ) {
    this.changed = new ChangedTasks({
      watched: () => this.tasks.keys(),
      readRows: (ids) => this.readRows(ids),
      failed: ({ message }) => logger.debug('followed tasks could not be read', { reason: message }),
    });
    // The client of an ended stream opens it again at another process; an open one would keep this process alive.
    drain.onBegin(() => this.each((stream) => stream.end()));
    notifications.on(changeChannel, (id) => {
      this.positions.lookAgain();
      if (this.tasks.has(id)) this.changed.add([id]);
    });
    notifications.on(progressChannel, (payload) => this.step(payload));
    positions.onPosition((id, position) => {
      const text = frame('queued', { position });
      for (const stream of this.tasks.get(id)?.streams ?? []) stream.queued(position, text);
    });
  }

  onApplicationBootstrap(): void {
    this.changed.start();
    this.heartbeat = setInterval(() => void this.each((stream) => stream.beat()), heartbeatMs).unref();
  }

  beforeApplicationShutdown(): void {
    this.changed.stop();
    clearInterval(this.heartbeat);
    this.positions.stop();
  }

  /** Sends a task's events to a stream. @returns a function that stops it. */
  follow(task: FollowedTask, stream: EventStream): () => void {
    const followed = this.tasks.get(task.id) ?? { ...task, streams: new Set() };
    followed.streams.add(stream);
    this.tasks.set(task.id, followed);
    if (this.drain.isDraining) stream.end();
    this.changed.add([task.id]);
    return () => {
      followed.streams.delete(stream);
      if (followed.streams.size === 0 && this.tasks.get(task.id) === followed) this.forget(task.id);
    };
  }

  /** Whether a task has terminated in this attempt: a client that has received that end has missed nothing. */
  async hasTerminated(id: string, attempt: number): Promise<boolean> {
    const task = await this.rows.findOne({ select: { status: true }, where: { id, attempt } });
    return task !== null && isTerminated(task.status);
  }

  private step(payload: string): void {
    if (this.tasks.size === 0) return;
    const message = JSON.parse(payload) as StepMessage;
    const followed = this.tasks.get(message.id);
    if (!followed) return;
    const frames = stepFrames(message);
    for (const stream of followed.streams) stream.step(frames);
  }

  private async readRows(ids: readonly string[]): Promise<void> {
    const select = { id: true, status: true, attempt: true, sandbox: true } as const;
    const found = await this.rows.find({ select, where: { id: In(ids) } });
    const states = new Map<string, TaskState>(found.map((row) => [row.id, row]));
    for (const id of ids) {
      const followed = this.tasks.get(id);
      if (followed) await this.send(followed, states.get(id));
    }
  }

  private async send(followed: Followed, state: TaskState | undefined): Promise<void> {
    if (state?.status === 'queued') return this.positions.follow(state);
    this.positions.forget(followed.id);
    if (state && !isTerminated(state.status)) return this.begun(followed, state);
    const record = state && (await unlessDeleted(followed.readRecord));
    this.end(followed, state && record ? endFrame(state.attempt, record) : frame('deleted', { id: followed.id }));
  }

  private async begun({ streams, readAdvance }: Followed, { attempt }: TaskState): Promise<void> {
    const isNews = [...streams].some((stream) => !stream.knows(attempt));
    const advance = isNews && readAdvance && (await unlessDeleted(readAdvance));
    if (advance) for (const stream of streams) stream.started(attempt, advance);
  }

  private end(followed: Followed, text: string): void {
    this.forget(followed.id);
    for (const stream of followed.streams) stream.end(text);
  }

  private forget(id: string): void {
    this.tasks.delete(id);
    this.positions.forget(id);
  }

  private each(act: (stream: EventStream) => void): Promise<void> {
    return loopTime.forEach(
      TaskFeed.name,
      [...this.tasks.values()].flatMap(({ streams }) => [...streams]),
      act,
    );
  }
}

/** Undefined when the record has just been deleted. */
async function unlessDeleted<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
