import type { ImageTask } from '@app/domain';
import { isTerminated } from '@app/domain';
import type { StepMessage } from '@app/queue';
import type { Request, Response } from 'express';
import type { TaskEventsService } from './task-events.service';

/** A comment goes out this often, so that no proxy takes a quiet stream for a dead one. */
const heartbeatMs = 15_000;
/** A missed notification is found by reading the row this often. */
const rereadMs = 3_000;
/** What a client waits before it connects again. */
const retryMs = 2_000;

/** How the stream reads what it shows. */
export interface EventSource {
  taskId: string;
  /** The task as it is now; undefined once it is deleted. */
  readTask(): Promise<ImageTask | undefined>;
  /** The record as GET returns it. */
  readRecord(): Promise<unknown>;
}

/**
 * Sends server-sent events until the task has terminated or the client goes: `queued` with the position, `progress` with the
 * step and now and then a preview, and `terminated` with the record, after which the stream ends.
 * An event's id is `<attempt>-<step>`: a client that comes back with `Last-Event-ID` gets what has come since, not what it had.
 */
export class EventStream {
  private lastPosition?: number;
  private sent: [attempt: number, step: number];
  private reading: Promise<void> | undefined;
  private again = false;
  private ended = false;
  private readonly timers: NodeJS.Timeout[] = [];
  private unwatch = (): void => undefined;

  constructor(
    private readonly events: TaskEventsService,
    private readonly source: EventSource,
    private readonly response: Response,
    lastEventId: string | undefined,
  ) {
    const match = /^(\d{1,9})-(\d{1,9})$/.exec(lastEventId ?? '');
    this.sent = match ? [Number(match[1]), Number(match[2])] : [0, 0];
  }

  /** Opens the stream of a request. The caller's right to see the task has been checked. */
  static open(events: TaskEventsService, source: EventSource, request: Request, response: Response): void {
    new EventStream(events, source, response, request.header('last-event-id')).start();
  }

  private start(): void {
    this.response.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    this.response.write(`retry: ${retryMs}\n\n`);
    this.unwatch = this.events.watch(this.source.taskId, {
      onStep: (step) => this.step(step),
      onChange: () => this.read(),
      onEnd: () => this.end(),
    });
    this.timers.push(setInterval(() => this.response.write(': still here\n\n'), heartbeatMs));
    this.timers.push(setInterval(() => this.read(), rereadMs));
    this.response.on('close', () => this.end());
    this.read();
  }

  private step({ attempt, step, total, preview }: StepMessage): void {
    const [lastAttempt, lastStep] = this.sent;
    if (this.ended || attempt < lastAttempt || (attempt === lastAttempt && step <= lastStep)) return;
    this.sent = [attempt, step];
    this.send(
      'progress',
      { step, total, preview: preview ? `data:image/jpeg;base64,${preview}` : null },
      `${attempt}-${step}`,
    );
  }

  /** Reads the row, one read at a time; a change that comes during one leads to another. */
  private read(): void {
    if (this.ended) return;
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = this.readNow()
      // The database is away for the moment: the next read finds out.
      .catch(() => undefined)
      .finally(() => {
        this.reading = undefined;
        if (this.again) {
          this.again = false;
          this.read();
        }
      });
  }

  private async readNow(): Promise<void> {
    const task = await this.source.readTask();
    if (!task) {
      this.send('deleted', { id: this.source.taskId });
      this.end();
    } else if (isTerminated(task.status)) {
      const record = await this.source.readRecord();
      this.send('terminated', record, `${task.attempt}-${task.steps + 1}`);
      this.end();
    } else if (task.status === 'queued') {
      const position = await this.events.queuePosition(task);
      if (position !== this.lastPosition) this.send('queued', { position });
      this.lastPosition = position;
    }
  }

  private send(event: string, data: unknown, id?: string): void {
    if (this.ended) return;
    this.response.write(`${id ? `id: ${id}\n` : ''}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  private end(): void {
    if (this.ended) return;
    this.ended = true;
    for (const timer of this.timers) clearInterval(timer);
    this.unwatch();
    this.response.end();
  }
}
