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
  /** Pieces of work at a time. */
  concurrency?: number;
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
  private running = 0;
  private waiting = 0;

  constructor(private readonly options: TurnsOptions) {}

  /**
   * Runs the work when the key's turn has come.
   * @throws TurnsFullError at once where the key or all keys together have too much that waits.
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    await this.turn(key);
    try {
      return await work();
    } finally {
      this.running--;
      this.next();
    }
  }

  private turn(key: string): Promise<void> {
    const { perKey, total } = this.options;
    const lane = this.lanes.get(key) ?? [];
    if (lane.length >= perKey || this.waiting >= total) throw new TurnsFullError(lane.length >= perKey);
    return new Promise((start) => {
      lane.push({ start });
      this.lanes.set(key, lane);
      this.waiting++;
      this.next();
    });
  }

  private next(): void {
    if (this.running >= (this.options.concurrency ?? 1)) return;
    const first = this.lanes.entries().next();
    if (first.done) return;
    const [key, lane] = first.value;
    // Behind all other keys that wait.
    this.lanes.delete(key);
    const turn = lane.shift();
    if (lane.length > 0) this.lanes.set(key, lane);
    this.waiting--;
    this.running++;
    turn?.start();
  }
}
