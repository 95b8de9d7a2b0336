/**
 * Milliseconds of the device that each owner has had, by which the loop tells whose turn it is. The time of failed and of
 * canceled tasks counts too. An owner gains nothing by being idle: one who comes back begins with as much as the owner has
 * had whose turn it is. That level only rises, so nobody waits for one newcomer after the other.
 * Source: start-time fair queuing (Goyal, Vin, Cheng 1996).
 */
export class Turns {
  private readonly ms = new Map<string, number>();
  /** Number of tasks of each owner who has any. */
  private readonly tasks = new Map<string, number>();
  /** The most that an owner had had at the beginning of a turn. */
  private level = 0;

  /** An owner has one task more. */
  taskAdded(owner: string): void {
    const count = this.tasks.get(owner) ?? 0;
    if (count === 0) this.ms.set(owner, Math.max(this.msOf(owner), this.level));
    this.tasks.set(owner, count + 1);
  }

  /** An owner has one task less. Their time is remembered while it is above the level, and tasks are there. */
  taskEnded(owner: string): void {
    const left = this.tasks.get(owner)! - 1;
    if (left > 0) this.tasks.set(owner, left);
    else this.tasks.delete(owner);
    for (const [other, ms] of this.ms)
      if (!this.tasks.has(other) && (this.tasks.size === 0 || ms <= this.level)) this.ms.delete(other);
  }

  /** The device works for this owner now. */
  turnBegan(owner: string): void {
    this.level = Math.max(this.level, this.msOf(owner));
  }

  /** Adds time of the device to what an owner has had. */
  charge(owner: string, ms: number): void {
    this.ms.set(owner, this.msOf(owner) + ms);
  }

  /** Milliseconds of the device that an owner has had, counted for all from the same start. */
  msOf(owner: string): number {
    return this.ms.get(owner) ?? this.level;
  }
}
