// Attack: many requests whose work takes milliseconds each, so that the event loop answers nobody else.
import { setImmediate } from 'node:timers/promises';
import { FairTurns } from '@app/process';

/** All work together runs for this long, before the event loop gets its turn. */
const sliceMs = 4;

/**
 * Work of many keys on the event loop itself: a few milliseconds per turn of the loop, however many requests have some,
 * and keys take turns. The limit of open requests bounds what waits.
 */
export class LoopTime {
  private readonly turns = new FairTurns({ concurrency: 1 });
  private spentMs = 0;

  /** @param pauseFactor pause after a slice, as a multiple of the time worked; 0: one round of the event loop. */
  constructor(private readonly pauseFactor = 0) {}

  /** Processes many items in order. A single one must take no more than a few milliseconds. */
  async forEach<T>(key: string, all: readonly T[], act: (one: T, index: number) => void): Promise<void> {
    for (let at = 0; at < all.length;) {
      const end = await this.turns.take(key);
      const begin = performance.now();
      let now = begin;
      try {
        for (; at < all.length && this.spentMs + now - begin < sliceMs; at++) {
          act(all[at], at);
          now = performance.now();
        }
      } finally {
        this.spentMs += performance.now() - begin;
        if (this.spentMs < sliceMs) end();
        else await this.pause(end);
      }
    }
  }

  /** The work just done goes on after a round of the loop; the next work waits for the whole pause. */
  private async pause(end: () => void): Promise<void> {
    const pauseMs = this.pauseFactor * this.spentMs;
    this.spentMs = 0;
    if (pauseMs > 0) setTimeout(end, pauseMs);
    await setImmediate();
    if (pauseMs === 0) end();
  }
}

/** All such work of this process, except for large bodies. */
export const loopTime = new LoopTime();
