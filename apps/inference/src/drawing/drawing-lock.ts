import { removeFrom } from '@app/process';
import { TaskAbortedError } from '../engine-client/task-errors';

/**
 * A readers-writer lock, first in, first out: tasks are drawn beside each other, but one that may have ended a worker
 * is drawn alone. A crash ends all engines of the process, so a task beside it could be blamed, or be to blame.
 */
export class DrawingLock {
  private drawn = 0;
  private isDrawnAlone = false;
  private readonly waiting: { alone: boolean; start: () => void }[] = [];

  /** Whether a task is drawn alone, or is about to be: until it has ended, no other may be claimed. */
  get isTakenAlone(): boolean {
    return this.isDrawnAlone || this.waiting.some(({ alone }) => alone);
  }

  /**
   * Begins to draw a task. One that is drawn alone waits until nothing else is; what comes after it waits behind it.
   * @returns what has to be called when it is drawn; calling it twice is the same as once
   * @throws TaskAbortedError if `signal` aborts before it has begun
   */
  begin(alone: boolean, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        removeFrom(this.waiting, entry);
        reject(new TaskAbortedError('The task was given up before it was drawn.'));
        this.beginNext();
      };
      const entry = {
        alone,
        start: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(this.begun(alone));
        },
      };
      this.waiting.push(entry);
      signal.addEventListener('abort', giveUp, { once: true });
      this.beginNext();
      if (signal.aborted && this.waiting.includes(entry)) giveUp();
    });
  }

  private begun(alone: boolean): () => void {
    this.drawn++;
    this.isDrawnAlone = alone;
    let isDrawn = true;
    return () => {
      if (!isDrawn) return;
      isDrawn = false;
      this.drawn--;
      if (alone) this.isDrawnAlone = false;
      this.beginNext();
    };
  }

  private beginNext(): void {
    const [next] = this.waiting;
    if (!next || this.isDrawnAlone || (next.alone && this.drawn > 0)) return;
    this.waiting.shift();
    next.start();
    this.beginNext();
  }
}
