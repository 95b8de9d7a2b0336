/**
 * The milliseconds of the device that each owner has had, by which `notAhead` tells whose turn it is. What failed, was
 * canceled or never began counts as well. Idle time earns nothing: an owner who comes back begins level with the owner
 * whose turn it is, and that level only rises, so nobody waits for one newcomer after the other.
 * Source: start-time fair queuing (Goyal, Vin, Cheng 1996).
 */
export class Turns {
  private readonly ms = new Map<string, number>();
  /** Tasks of each owner that has any. */
  private readonly tasks = new Map<string, number>();
  private level = 0;

  /** An owner has one task more. */
  taskAdded(owner: string): void {
    const count = this.tasks.get(owner) ?? 0;
    if (count === 0) this.ms.set(owner, Math.max(this.msOf(owner), this.level));
    this.tasks.set(owner, count + 1);
  }

  /** An owner has one task less. What it has had is remembered for as long as it would make a difference. */
  taskEnded(owner: string): void {
    const left = this.tasks.get(owner)! - 1;
    if (left > 0) this.tasks.set(owner, left);
    else this.tasks.delete(owner);
    for (const [other, ms] of this.ms)
      if (!this.tasks.has(other) && (this.tasks.size === 0 || ms <= this.level)) this.ms.delete(other);
  }

  /** It is this owner's turn. */
  turnBegan(owner: string): void {
    this.level = Math.max(this.level, this.msOf(owner));
  }

  charge(owner: string, ms: number): void {
    this.ms.set(owner, this.msOf(owner) + ms);
  }

  /** Milliseconds of the device that an owner has had, counted for all from the same start. */
  msOf(owner: string): number {
    return this.ms.get(owner) ?? this.level;
  }
}
