import { setImmediate } from 'node:timers/promises';
import { FairTurns } from './fair-turns';

/** Work goes on for so long, all of it together, before the event loop has its turn. */
const sliceMs = 4;

/**
 * Work of many keys that is done on the event loop itself: a few milliseconds of it between two rounds of the loop, however many requests
 * have some, and keys take turns. What waits is bounded by the requests that are under way.
 */
export class LoopTime {
  private readonly turns = new FairTurns({ perKey: Infinity, total: Infinity });
  private spentMs = 0;

  /** Does something to each of many, in their order. One of them alone must take no more than some milliseconds. */
  async forEach<T>(key: string, all: readonly T[], act: (one: T, index: number) => void): Promise<void> {
    for (let at = 0; at < all.length;)
      await this.turns.run(key, async () => {
        const begin = performance.now();
        let now = begin;
        for (; at < all.length && this.spentMs + now - begin < sliceMs; at++) {
          act(all[at], at);
          now = performance.now();
        }
        this.spentMs += now - begin;
        if (this.spentMs < sliceMs) return;
        await setImmediate();
        this.spentMs = 0;
      });
  }
}

/** All such work of this process. */
export const loopTime = new LoopTime();
