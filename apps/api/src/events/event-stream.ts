import type { Writable } from 'node:stream';
import type { StepMessage } from '@app/tasks';
import { comment, frame } from '../http/server-sent-events';

/** A step, ready to send to all streams of its task. */
export interface StepFrames {
  attempt: number;
  step: number;
  /** With its preview, if any. */
  whole: string;
  /** Without its preview. */
  brief: string;
}

/** Serialises a step once for all streams. */
export function stepFrames({ attempt, step, total, preview, loss, order = step }: StepMessage): StepFrames {
  const id = `${attempt}-${order}`;
  const data = { step, total, ...(loss !== undefined && { loss }) };
  const brief = frame('progress', { ...data, preview: null }, id);
  const whole = preview ? frame('progress', { ...data, preview: `data:image/jpeg;base64,${preview}` }, id) : brief;
  return { attempt, step: order, whole, brief };
}

/** How far a task is. */
export interface Advance {
  step: number;
  total: number;
}

/** The last event of a task that has terminated. */
export function endFrame(attempt: number, record: unknown): string {
  return frame('terminated', record, `${attempt}-end`);
}

/** The attempt whose last event a client reports to have received; undefined if it reports none. */
export function endedAttempt(lastEventId: string | undefined): number | undefined {
  const match = /^(\d{1,9})-end$/.exec(lastEventId ?? '');
  return match ? Number(match[1]) : undefined;
}

/** A client waits for this long before it reconnects. */
const retryMs = 2_000;
/** Bytes: a reader that is further behind is cut off; the record has what it missed. */
const maxUnread = 128 * 1024;

/**
 * One client's server-sent events. An event's id is `<attempt>-<step>`: a client that reconnects with `Last-Event-ID`
 * gets only newer events. A reader that falls behind gets no previews, and is cut off if that does not help.
 */
export class EventStream {
  private position?: number;
  private sent: [attempt: number, step: number];

  constructor(
    private readonly answer: Writable,
    lastEventId: string | undefined,
  ) {
    const match = /^(\d{1,9})-(\d{1,9})$/.exec(lastEventId ?? '');
    this.sent = match ? [Number(match[1]), Number(match[2])] : [0, 0];
  }

  /** Tells the client how long to wait before it reconnects. */
  start(): void {
    this.write(`retry: ${retryMs}\n\n`);
  }

  /** Sends a step, unless the client has it. */
  step({ attempt, step, whole, brief }: StepFrames): void {
    const [lastAttempt, lastStep] = this.sent;
    if (attempt < lastAttempt || (attempt === lastAttempt && step <= lastStep)) return;
    this.sent = [attempt, step];
    // A task that is queued again has its position sent, even if that is the same.
    this.position = undefined;
    this.write(this.answer.writableNeedDrain ? brief : whole);
  }

  /** Says that an attempt has begun, unless the client knows of it. */
  started(attempt: number, { step, total }: Advance): void {
    if (this.knows(attempt)) return;
    this.sent = [attempt, 0];
    this.position = undefined;
    this.write(frame('started', { step, total }, `${attempt}-0`));
  }

  knows(attempt: number): boolean {
    return this.sent[0] >= attempt;
  }

  /** Sends a position in the queue, unless the client has it. */
  queued(position: number, frame: string): void {
    if (position === this.position) return;
    this.position = position;
    this.write(frame);
  }

  beat(): void {
    if (!this.answer.writableNeedDrain) this.write(comment);
  }

  /** Sends the last event, if any, and ends the response. */
  end(frame = ''): void {
    this.write(frame);
    if (!this.answer.closed) this.answer.end();
  }

  private write(frame: string): void {
    if (this.answer.closed || this.answer.writableEnded || frame === '') return;
    this.answer.write(frame);
    if (this.answer.writableLength > maxUnread) this.answer.destroy();
  }
}
