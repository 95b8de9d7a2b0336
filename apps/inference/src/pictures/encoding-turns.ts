import { FairTurns, KeyCounts, usableCores } from '@app/process';

/** Half of the processor, because the engine needs it at the same time. Libuv has four threads for it in any case. */
const encodingsAtOnce = Math.min(4, Math.max(1, Math.floor(usableCores() / 2)));

/**
 * Owners take turns at encoding pictures on the processor. A high-resolution picture takes seconds of a core, so it
 * lets what the processor draws for other owners go first; one of ordinary size does not wait for it.
 */
export class EncodingTurns {
  private readonly turns: Record<'ordinary' | 'large', FairTurns>;
  /** How many tasks the processor draws for each owner. */
  private readonly drawn = new KeyCounts();
  private readonly waking = new Set<() => void>();
  /** Milliseconds of the last large picture. */
  private largeMs = 0;

  /** @param concurrency how many pictures of ordinary size are encoded at once, and how many large ones beside them */
  constructor(concurrency = encodingsAtOnce) {
    this.turns = { ordinary: new FairTurns({ concurrency }), large: new FairTurns({ concurrency }) };
  }

  /** The processor draws a task for this owner, until the result is called. */
  noteDrawing(owner: string): () => void {
    const end = this.drawn.add(owner);
    return () => {
      end();
      for (const wake of this.waking) wake();
    };
  }

  ordinary<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return this.turns.ordinary.run(owner, work);
  }

  /** @param givenUp ends the wait for others; the work is begun all the same */
  async large<T>(owner: string, givenUp: AbortSignal, work: () => Promise<T>): Promise<T> {
    const arrivedAt = performance.now();
    const waitMs = (): number => (givenUp.aborted ? 0 : arrivedAt + this.longestWaitMs(owner) - performance.now());
    // The wait holds no turn, so that others can encode; tasks that began meanwhile are looked for again with the turn.
    for (;;) {
      while (waitMs() > 0) await this.changed(givenUp, waitMs());
      const end = await this.turns.large.take(owner);
      try {
        if (waitMs() > 0) continue;
        const startedAt = performance.now();
        const encoded = await work();
        this.largeMs = performance.now() - startedAt;
        return encoded;
      } finally {
        end();
      }
    }
  }

  /** Counted from the arrival of a picture: twice as long as with equal shares, because others may draw without end. */
  private longestWaitMs(owner: string): number {
    const others = this.drawn.size - (this.drawn.has(owner) ? 1 : 0);
    return 2 * others * this.largeMs;
  }

  /** Resolves when less is drawn, the picture is given up, or so much time has passed. */
  private changed(givenUp: AbortSignal, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.waking.delete(wake);
        givenUp.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.waking.add(wake);
      givenUp.addEventListener('abort', wake);
    });
  }
}
