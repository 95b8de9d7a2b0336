import { availableParallelism } from 'node:os';
import { FairTurns } from '@app/process';

/** Half of the processor, because the engine needs it at the same time. Libuv has four threads for it in any case. */
const encodingsAtOnce = Math.min(4, Math.max(1, Math.floor(availableParallelism() / 2)));

/**
 * Turns of pictures at the processor. Owners take turns. A high-resolution picture takes seconds of a core, so it lets
 * what the processor draws for other owners go first, and one of ordinary size does not wait for it.
 */
export class EncodingTurns {
  private readonly turns = { ordinary: newTurns(), large: newTurns() };
  /** How many tasks the processor draws for each owner. */
  private readonly drawn = new Map<string, number>();
  private readonly waking = new Set<() => void>();
  /** What the last large picture took. */
  private largeMs = 0;

  /** @param now milliseconds of a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** The processor draws a task for this owner, until the result is called, once. */
  drawing(owner: string): () => void {
    this.drawn.set(owner, (this.drawn.get(owner) ?? 0) + 1);
    return () => {
      const left = this.drawn.get(owner)! - 1;
      if (left > 0) this.drawn.set(owner, left);
      else this.drawn.delete(owner);
      for (const wake of this.waking) wake();
    };
  }

  ordinary<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return this.turns.ordinary.run(owner, work);
  }

  /** @param givenUp ends the wait for others; the work is begun all the same */
  large<T>(owner: string, givenUp: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.turns.large.run(owner, async () => {
      await this.othersDrawn(owner, givenUp);
      const startedAt = this.now();
      const encoded = await work();
      this.largeMs = this.now() - startedAt;
      return encoded;
    });
  }

  /**
   * Resolves when nothing is drawn for other owners, or the picture is given up. It waits for no more than twice as long
   * as with equal shares, because others may draw without end.
   */
  private async othersDrawn(owner: string, givenUp: AbortSignal): Promise<void> {
    const others = (): number => this.drawn.size - (this.drawn.has(owner) ? 1 : 0);
    if (others() === 0 || givenUp.aborted) return;
    let timer: NodeJS.Timeout | undefined;
    let look = (): void => undefined;
    await new Promise<void>((resolve) => {
      look = () => (others() === 0 || givenUp.aborted ? resolve() : undefined);
      timer = setTimeout(resolve, 2 * others() * this.largeMs);
      this.waking.add(look);
      givenUp.addEventListener('abort', look, { once: true });
    });
    clearTimeout(timer);
    this.waking.delete(look);
    givenUp.removeEventListener('abort', look);
  }
}

function newTurns(): FairTurns {
  return new FairTurns({ concurrency: encodingsAtOnce, perKey: Infinity, total: Infinity });
}
