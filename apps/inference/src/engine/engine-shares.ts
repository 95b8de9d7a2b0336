/**
 * How much time of the engine each owner has had, so that the one who has had less goes first. An owner who begins to
 * draw counts as having had as much as the drawing owner who has had least: idle time earns nothing. One who comes back
 * soon keeps what it had, if that is more, so that an owner of many short drawings does not begin anew with each.
 * Source: start-time fair queuing (Goyal, Vin, Cheng 1996). There who is ahead waits for every newcomer; here it waits
 * for as much of their time as it is ahead at most, because what they have while it waits is taken off its lead.
 */
export class EngineShares {
  private readonly ms = new Map<string, number>();
  /** Those who draw, each with the number of the charge before which it began. */
  private readonly drawing = new Map<string, number>();
  /** The number of each owner's last charge. */
  private readonly served = new Map<string, number>();
  private charges = 0;

  of(owner: string): number {
    return this.ms.get(owner) ?? 0;
  }

  /** An owner who is drawing already goes on from what it has had. */
  enter(owner: string): void {
    if (this.drawing.has(owner)) return;
    this.ms.set(owner, Math.max(this.of(owner), this.least));
    this.drawing.set(owner, this.charges);
  }

  charge(owner: string, ms: number): void {
    const had = this.ms.get(owner);
    if (had === undefined) return;
    this.ms.set(owner, had + ms);
    this.served.set(owner, ++this.charges);
    const began = this.drawing.get(owner) ?? 0;
    for (const other of this.drawing.keys()) {
      const hasWaited = other !== owner && (this.served.get(other) ?? 0) <= began;
      if (hasWaited) this.ms.set(other, Math.max(Math.min(this.of(other), had + ms), this.of(other) - ms));
    }
  }

  leave(owner: string): void {
    this.drawing.delete(owner);
    const { least } = this;
    // Who has had no more than those who draw would start level with them in any case.
    for (const [other, ms] of this.ms)
      if (!this.drawing.has(other) && (this.drawing.size === 0 || ms <= least)) {
        this.ms.delete(other);
        this.served.delete(other);
      }
  }

  /** What the drawing owner with the least has had. */
  private get least(): number {
    return this.drawing.size === 0 ? 0 : Math.min(...[...this.drawing.keys()].map((owner) => this.of(owner)));
  }
}
