/** Too much work is waiting; a retry later may succeed. */
export class TurnsFullError extends Error {
  override readonly name = 'TurnsFullError';

  /** @param isOfKey whether the key's own limit was reached, else that of all keys together. */
  constructor(readonly isOfKey: boolean) {
    super(isOfKey ? 'The key has too much that waits.' : 'Too much waits.');
  }
}

/** Limits of running and waiting work; by default none. */
export interface TurnsOptions {
  /**
   * Work running at once, in total and per key. With fewer per key than in total, or one of both, a key whose work runs
   * has its next turn behind the keys that have come meanwhile.
   */
  concurrency?: number;
  keyConcurrency?: number;
  /** Waiting work per key, and in total. */
  perKey?: number;
  total?: number;
}

interface Waiting {
  start: () => void;
}

/** Work of many keys, a few pieces at a time: keys take turns, so that the queue of one does not delay another. */
export class FairTurns {
  /** In the order of their next turn. */
  private readonly lanes = new Map<string, Waiting[]>();
  /** Keys with as much running work as allowed. */
  private readonly held = new Map<string, Waiting[]>();
  private readonly running = new Map<string, number>();
  private runningInAll = 0;
  private waiting = 0;

  constructor(private readonly options: TurnsOptions) {}

  /**
   * Runs the work when the key's turn has come.
   * @throws TurnsFullError at once if the key or all keys together have too much waiting work.
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const end = await this.take(key);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /**
   * Resolves when the key's turn has come, for work that `run` cannot enclose.
   * @param signal ends the wait for a turn.
   * @returns a function that ends the turn; repeated calls have no effect.
   * @throws TurnsFullError as `run` does; the reason of the signal
   */
  async take(key: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    await this.turn(key, signal);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.end(key);
    };
  }

  private turn(key: string, signal?: AbortSignal): Promise<void> {
    const { perKey = Infinity, total = Infinity } = this.options;
    const lane = this.lanes.get(key) ?? this.held.get(key) ?? [];
    if (lane.length >= perKey || this.waiting >= total) throw new TurnsFullError(lane.length >= perKey);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        lane.splice(lane.indexOf(waiting), 1);
        if (lane.length === 0) for (const each of [this.lanes, this.held]) each.delete(key);
        this.waiting--;
        reject(signal!.reason as Error);
      };
      const waiting = {
        start: () => {
          signal?.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal?.addEventListener('abort', leave, { once: true });
      lane.push(waiting);
      this.putBack(key, lane);
      this.waiting++;
      this.startNext();
    });
  }

  private end(key: string): void {
    const left = (this.running.get(key) ?? 0) - 1;
    if (left > 0) this.running.set(key, left);
    else this.running.delete(key);
    this.runningInAll--;
    const lane = this.held.get(key);
    this.held.delete(key);
    if (lane) this.putBack(key, lane);
    this.startNext();
  }

  private startNext(): void {
    while (this.runningInAll < (this.options.concurrency ?? Infinity)) {
      const first = this.lanes.entries().next();
      if (first.done) return;
      const [key, lane] = first.value;
      // Behind all other waiting keys.
      this.lanes.delete(key);
      const turn = lane.shift();
      this.waiting--;
      this.runningInAll++;
      this.running.set(key, (this.running.get(key) ?? 0) + 1);
      if (lane.length > 0) this.putBack(key, lane);
      turn?.start();
    }
  }

  /** A lane that already has its place keeps it. */
  private putBack(key: string, lane: Waiting[]): void {
    const mayRun = (this.running.get(key) ?? 0) < (this.options.keyConcurrency ?? Infinity);
    (mayRun ? this.lanes : this.held).set(key, lane);
  }
}
