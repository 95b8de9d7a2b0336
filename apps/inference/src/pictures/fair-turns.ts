/** Runs so many pieces of work at once, and lets the owners who wait take turns. Each owner's own are run in the order in which they come. */
export class FairTurns {
  private running = 0;
  /** What waits, by owner; who is next comes first, because a map keeps insertion order. */
  private readonly waiting = new Map<string, (() => void)[]>();

  constructor(private readonly atOnce: number) {}

  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    if (this.running < this.atOnce) this.running++;
    else await this.turn(owner);
    try {
      return await work();
    } finally {
      this.handOn();
    }
  }

  private turn(owner: string): Promise<void> {
    return new Promise((resolve) => this.waiting.set(owner, [...(this.waiting.get(owner) ?? []), resolve]));
  }

  /** Lets the next owner begin, who then goes behind all others. */
  private handOn(): void {
    for (const [owner, [begin, ...later]] of this.waiting) {
      this.waiting.delete(owner);
      if (later.length > 0) this.waiting.set(owner, later);
      return begin();
    }
    this.running--;
  }
}
