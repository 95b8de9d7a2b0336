/** Too much waits already; the same may be asked again later. */
export class TurnsFullError extends Error {
  override readonly name = 'TurnsFullError';

  /** @param isOfKey whether it is the key's own that waits, else that of all keys together. */
  constructor(readonly isOfKey: boolean) {
    super(isOfKey ? 'The key has too much that waits.' : 'Too much waits.');
  }
}

/** Bounds of what runs and waits. */
export interface TurnsOptions {
  /** Pieces of work at a time, and of one key. */
  concurrency?: number;
  keyConcurrency?: number;
  /** Pieces of one key, and of all keys, that may wait. */
  perKey: number;
  total: number;
}

interface Waiting {
  start: () => void;
}

/** Work of many keys, a few pieces at a time: keys take turns, so that the queue of one is no other's wait. */
export class FairTurns {
  /** In the order of their next turn. */
  private readonly lanes = new Map<string, Waiting[]>();
  /** Of keys that have as much running as they may. */
  private readonly held = new Map<string, Waiting[]>();
  /** By key. */
  private readonly running = new Map<string, number>();
  private runningInAll = 0;
  private waiting = 0;

  constructor(private readonly options: TurnsOptions) {}

  /**
   * Runs the work when the key's turn has come.
   * @throws TurnsFullError at once where the key or all keys together have too much that waits.
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
   * @returns what ends the turn, however often it is called.
   * @throws TurnsFullError as `run` does
   */
  async take(key: string): Promise<() => void> {
    await this.turn(key);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.end(key);
    };
  }

  private turn(key: string): Promise<void> {
    const { perKey, total } = this.options;
    const lane = this.lanes.get(key) ?? this.held.get(key) ?? [];
    if (lane.length >= perKey || this.waiting >= total) throw new TurnsFullError(lane.length >= perKey);
    return new Promise((start) => {
      lane.push({ start });
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
    while (this.runningInAll < (this.options.concurrency ?? 1)) {
      const first = this.lanes.entries().next();
      if (first.done) return;
      const [key, lane] = first.value;
      // Behind all other keys that wait.
      this.lanes.delete(key);
      const turn = lane.shift();
      this.waiting--;
      this.runningInAll++;
      this.running.set(key, (this.running.get(key) ?? 0) + 1);
      if (lane.length > 0) this.putBack(key, lane);
      turn?.start();
    }
  }

  /** A lane that has its place already keeps it. */
  private putBack(key: string, lane: Waiting[]): void {
    const mayRun = (this.running.get(key) ?? 0) < (this.options.keyConcurrency ?? Infinity);
    (mayRun ? this.lanes : this.held).set(key, lane);
  }
}
