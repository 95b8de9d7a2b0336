import { removeFrom } from '@app/process';
import { Injectable } from '@nestjs/common';
import { DrawingAbortedError } from '../engine/engine-errors';

interface Waiting {
  alone: boolean;
  enter: () => void;
}

/**
 * Every task passes this gate before it is drawn: side by side with others, except one that may have ended a worker,
 * which has the whole process to itself. A crash ends all engines of the process, so what else is being drawn could be
 * blamed for it, and could be to blame. Tasks enter in the order in which they come.
 */
@Injectable()
export class DrawingGate {
  private readonly waiting: Waiting[] = [];
  private inside = 0;
  private isTaken = false;

  /** Whether a task is drawn alone or waits for it: nothing else should be claimed meanwhile. */
  get isClosed(): boolean {
    return this.isTaken || this.waiting.some(({ alone }) => alone);
  }

  /**
   * @returns what has to be called when the task leaves; calling it twice is the same as once
   * @throws DrawingAbortedError if `signal` aborts before the task has entered
   */
  async enter(alone: boolean, signal: AbortSignal): Promise<() => void> {
    await new Promise<void>((resolve, reject) => {
      const entry = { alone, enter: () => (signal.removeEventListener('abort', giveUp), resolve()) };
      const giveUp = (): void => {
        removeFrom(this.waiting, entry);
        this.admit();
        reject(new DrawingAbortedError('The task was given up before it was drawn.'));
      };
      this.waiting.push(entry);
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      this.admit();
    });
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      this.inside--;
      this.isTaken = false;
      this.admit();
    };
  }

  private admit(): void {
    while (this.waiting.length > 0) {
      const [{ alone, enter }] = this.waiting;
      if (this.isTaken || (alone && this.inside > 0)) return;
      this.waiting.shift();
      this.inside++;
      this.isTaken = alone;
      enter();
    }
  }
}
