import type { Response } from 'express';
import type { StepFrames } from './frames';
import { comment } from './frames';

/** What a client waits before it connects again. */
const retryMs = 2_000;
/** A reader that is so far behind is cut off; what it has missed is in the record. */
const maxUnread = 128 * 1024;

/**
 * One client's server-sent events. Its id is `<attempt>-<step>`: a client that comes back with `Last-Event-ID` gets what has
 * come since. A reader that falls behind gets no previews, and is cut off when that does not help.
 */
export class EventStream {
  private position?: number;
  private sent: [attempt: number, step: number];

  constructor(
    private readonly response: Response,
    lastEventId: string | undefined,
  ) {
    const match = /^(\d{1,9})-(\d{1,9})$/.exec(lastEventId ?? '');
    this.sent = match ? [Number(match[1]), Number(match[2])] : [0, 0];
  }

  /** Sends the head of the answer. */
  start(): void {
    startStream(this.response);
    this.write(`retry: ${retryMs}\n\n`);
  }

  /** Sends a step that is new to the client. */
  step({ attempt, step, whole, brief }: StepFrames): void {
    const [lastAttempt, lastStep] = this.sent;
    if (attempt < lastAttempt || (attempt === lastAttempt && step <= lastStep)) return;
    this.sent = [attempt, step];
    this.write(this.response.writableNeedDrain ? brief : whole);
  }

  /** Sends a position in the queue that is new to the client. */
  queued(position: number, frame: string): void {
    if (position === this.position) return;
    this.position = position;
    this.write(frame);
  }

  /** Keeps the connection open. */
  beat(): void {
    if (!this.response.writableNeedDrain) this.write(comment);
  }

  /** Sends the last event, if there is one, and ends the answer. */
  end(frame = ''): void {
    this.write(frame);
    if (!this.response.closed) this.response.end();
  }

  private write(frame: string): void {
    if (this.response.closed || this.response.writableEnded || frame === '') return;
    this.response.write(frame);
    if (this.response.writableLength > maxUnread) this.response.destroy();
  }
}

/** The head of the answer, which is all that a HEAD request gets. */
export function startStream(response: Response): void {
  response.status(200).set({
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  });
}
