import { KeyCounts } from '@app/process';
import { Inject, Injectable } from '@nestjs/common';
import { DrawingAbortedError } from '../engine/engine-errors';
import { Engines } from '../engine/engines';

/** How many times as many tasks as there are places free an owner may have. */
const perFreePlace = 2;

/**
 * Tasks, in parts of the engines' places, that a worker has at a time: the pictures of some are encoded while others
 * are drawn.
 */
const tasksPerPlace = 4 / 3;

/**
 * The tasks that a worker has, from their claim until their pictures are stored, and who may have more. An owner has at
 * most twice as many as places are left: one alone gets two thirds of them, and however many tasks a few owners have,
 * who has none finds a place. Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
 * switches", 1998.
 *
 * A task that may have ended a worker is drawn alone: a crash ends all engines of the process, so what else is being
 * drawn could be blamed for it, and could be to blame.
 */
@Injectable()
export class Places {
  private readonly taken = new KeyCounts();
  private readonly count: number;
  private drawn = 0;
  private isTakenAlone = false;
  private onNoneDrawn = (): void => undefined;

  constructor(@Inject(Engines) engines: { places: { count: number } }) {
    this.count = engines.places.count;
  }

  /** Whether another task may be claimed. */
  get hasRoom(): boolean {
    const tasks = this.taken.entries().reduce((sum, [, count]) => sum + count, 0);
    return !this.isTakenAlone && tasks < Math.floor(this.count * tasksPerPlace);
  }

  /** Owners who may have no other task here now. Who has none is never among them. */
  get full(): string[] {
    const taken = this.taken.entries();
    const left = taken.reduce((free, [, tasks]) => free - tasks, this.count) - 1;
    return taken.filter(([, tasks]) => tasks + 1 > perFreePlace * left).map(([owner]) => owner);
  }

  /** @returns what gives the place back */
  take(owner: string): () => void {
    return this.taken.add(owner);
  }

  /**
   * Begins to draw a task. One that is drawn alone waits until nothing else is; until it has ended, nothing is claimed.
   * @returns what has to be called when it is drawn; calling it twice is the same as once
   * @throws DrawingAbortedError if `signal` aborts before it has begun
   */
  async begin(alone: boolean, signal: AbortSignal): Promise<() => void> {
    this.isTakenAlone ||= alone;
    if (alone && this.drawn > 0) await this.noneDrawn(signal);
    this.drawn++;
    let isDrawn = true;
    return () => {
      if (!isDrawn) return;
      isDrawn = false;
      if (alone) this.isTakenAlone = false;
      if (--this.drawn === 0) this.onNoneDrawn();
    };
  }

  private noneDrawn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.isTakenAlone = false;
        this.onNoneDrawn = () => undefined;
        reject(new DrawingAbortedError('The task was given up before it was drawn.'));
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      this.onNoneDrawn = () => {
        signal.removeEventListener('abort', giveUp);
        this.onNoneDrawn = () => undefined;
        resolve();
      };
    });
  }
}
