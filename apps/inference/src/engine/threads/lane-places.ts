/**
 * How many pieces of work an engine on the processor does side by side. Two calls at a time, each with half of the threads, are done
 * sooner than the same two one after the other, each with all threads.
 */
export const laneCount = 2;

/**
 * How many pieces of work may begin beside one that is under way. A piece that lasts longer counts as hanging: the engine then begins
 * no more, falls silent, and is replaced.
 */
export const maxBeside = 300;

/** Which lanes are at a piece of work. */
export class LanePlaces {
  /** For each lane that is busy, how many pieces have begun in others since. */
  private readonly busy = new Map<number, number>();
  private changes = 0;
  /** The `changeCount` after which `change` waits by default. */
  private seen = 0;
  private waiting: (() => void)[] = [];

  constructor(private readonly count: number) {}

  /** Whether no lane is at anything. */
  get areIdle(): boolean {
    return this.busy.size === 0;
  }

  /** A lane that may begin a piece of work. */
  get free(): number | undefined {
    if (!this.mayBeginBeside) return undefined;
    return Array.from({ length: this.count }, (_, lane) => lane).find((lane) => !this.busy.has(lane));
  }

  /** Whether a piece of work may begin beside those that are under way: not while one of them hangs. */
  private get mayBeginBeside(): boolean {
    return [...this.busy.values()].every((beside) => beside < maxBeside);
  }

  /** Begins a piece of work, and does not wait for it. @param work never rejects */
  begin(lane: number, work: () => Promise<void>): void {
    for (const [other, beside] of this.busy) this.busy.set(other, beside + 1);
    this.busy.set(lane, 0);
    void work().finally(() => {
      this.busy.delete(lane);
      this.wake();
    });
  }

  /** How often a lane has ended a piece of work, or `wake` was called. */
  get changeCount(): number {
    return this.changes;
  }

  /** Lets who waits look again. */
  wake(): void {
    this.changes++;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  /**
   * Resolves when a lane has ended a piece of work, or at `wake`.
   * @param since a `changeCount`: at once if there was a change after it; by default, after the last one that was waited for
   */
  async change(since = this.seen): Promise<void> {
    while (this.changes === since) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.seen = this.changes;
  }

  /** Resolves when no lane is at anything. */
  async idle(): Promise<void> {
    while (!this.areIdle) await this.change();
  }
}
