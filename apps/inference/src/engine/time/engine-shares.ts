/**
 * How much time of the engine each owner has had, so that the one who has had less goes first: also for what failed,
 * was given up, or never began. An owner who comes counts as having had as much as the drawing owner who has had least:
 * idle time earns nothing. One who comes back soon keeps what it had, if that is more, so that an owner of many short
 * drawings does not begin anew with each.
 * Source: start-time fair queuing (Goyal, Vin, Cheng 1996). There who is ahead waits for every newcomer; here it waits
 * for as much of their time as it is ahead at most, because what they have while it waits is taken off its lead.
 */
export class EngineShares {
  private readonly ms = new Map<string, number>();
  /**
   * Owners with something that waits to begin, or is drawn, each with the number of the charge before which it came.
   */
  private readonly present = new Map<string, number>();
  private readonly drawing = new Set<string>();
  /** The number of each owner's last charge. */
  private readonly served = new Map<string, number>();
  private charges = 0;
  /** What `chargeFor` is at, each with the milliseconds that it has had so far. */
  private readonly open = new Set<{ ms: number }>();
  /** Until when that time is divided. */
  private dividedAt = 0;
  private blockedMs = 0;

  /** @param now milliseconds of a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** @returns milliseconds of the engine; one who has had nothing of late counts as a newcomer */
  of(owner: string): number {
    return this.ms.get(owner) ?? this.least;
  }

  /** An owner has something that waits to begin. */
  wait(owner: string): void {
    if (!this.present.has(owner)) this.come(owner);
  }

  /** An owner begins to draw. One who is drawing already goes on from what it has had. */
  enter(owner: string): void {
    if (this.drawing.has(owner)) return;
    this.come(owner);
    this.drawing.add(owner);
  }

  /** Adds so many milliseconds to what an owner has had. */
  charge(owner: string, ms: number): void {
    const had = this.of(owner) + ms;
    this.ms.set(owner, had);
    this.served.set(owner, ++this.charges);
    const came = this.present.get(owner) ?? -1;
    for (const other of this.present.keys()) {
      const hasWaited = other !== owner && (this.served.get(other) ?? 0) <= came;
      if (hasWaited) this.ms.set(other, Math.max(Math.min(this.of(other), had), this.of(other) - ms));
    }
    this.forget();
  }

  /**
   * Does work of the engine's thread that goes on between its calls, and charges what passes until it ends or fails,
   * but for the time that `noteBlocked` is told. Works that go on at the same time have equal parts of it. Calls of
   * lanes and of the second thread take nothing off, because the work goes on beside them.
   */
  async chargeFor<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.divide();
    const had = { ms: 0 };
    this.open.add(had);
    try {
      return await work();
    } finally {
      this.divide();
      this.open.delete(had);
      this.charge(owner, had.ms);
    }
  }

  /** The engine's thread was inside calls of the device for the last `ms` milliseconds. */
  noteBlocked(ms: number): void {
    this.blockedMs += ms;
    if (this.open.size > 0) this.divide(ms);
  }

  /** Milliseconds for which calls of the device have blocked the engine's thread since this was asked last. */
  takeBlocked(): number {
    const ms = this.blockedMs;
    this.blockedMs = 0;
    return ms;
  }

  private divide(blockedMs = 0): void {
    const now = this.now();
    const ms = Math.max(0, now - this.dividedAt - blockedMs);
    for (const had of this.open) had.ms += ms / this.open.size;
    this.dividedAt = now;
  }

  /** An owner draws nothing any more. @param waits whether it has something that waits to begin */
  leave(owner: string, waits = false): void {
    this.drawing.delete(owner);
    if (!waits) this.present.delete(owner);
    this.forget();
  }

  private come(owner: string): void {
    this.ms.set(owner, Math.max(this.of(owner), this.least));
    this.present.set(owner, this.charges);
  }

  /** Who is gone, and has had no more than the others, would start level with them in any case. */
  private forget(): void {
    const { least } = this;
    for (const [owner, ms] of this.ms)
      if (!this.present.has(owner) && (this.present.size === 0 || ms <= least)) {
        this.ms.delete(owner);
        this.served.delete(owner);
      }
  }

  /** What the owner with the least has had: of those who draw, else of those who wait; 0 if there is nobody. */
  private get least(): number {
    const owners = [...(this.drawing.size > 0 ? this.drawing : this.present.keys())];
    return owners.length === 0 ? 0 : Math.min(...owners.map((owner) => this.ms.get(owner)!));
  }
}
