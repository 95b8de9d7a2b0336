/**
 * Device time of each owner, which decides whose turn it is; the time of failed and canceled work counts. Idle time earns
 * nothing: an owner who comes or returns starts with at least the virtual time, which is the time of the owner whose turn
 * it is, and only rises.
 * Source: start-time fair queuing (Goyal, Vin, Cheng 1996).
 */
export class Turns {
  private readonly usedMs = new Map<string, number>();
  /** Number of tasks of each owner who has any. */
  private readonly tasks = new Map<string, number>();
  /** Milliseconds: the largest device time of an owner at the beginning of a turn. */
  private virtualTime = 0;

  /** An owner has one task more. */
  taskAdded(owner: string): void {
    const count = this.tasks.get(owner) ?? 0;
    if (count === 0) this.usedMs.set(owner, Math.max(this.usedMsOf(owner), this.virtualTime));
    this.tasks.set(owner, count + 1);
  }

  /** An owner has one task less. Their time is remembered while it is above the virtual time, and tasks are there. */
  taskEnded(owner: string): void {
    const left = this.tasks.get(owner)! - 1;
    if (left > 0) this.tasks.set(owner, left);
    else this.tasks.delete(owner);
    for (const [other, ms] of this.usedMs)
      if (!this.tasks.has(other) && (this.tasks.size === 0 || ms <= this.virtualTime)) this.usedMs.delete(other);
  }

  /** The device works for this owner now. */
  turnBegan(owner: string): void {
    this.virtualTime = Math.max(this.virtualTime, this.usedMsOf(owner));
  }

  /** Adds time of the device to what an owner has had. */
  charge(owner: string, ms: number): void {
    this.usedMs.set(owner, this.usedMsOf(owner) + ms);
  }

  /** Milliseconds of the device that an owner has had, counted for all from the same start. */
  usedMsOf(owner: string): number {
    return this.usedMs.get(owner) ?? this.virtualTime;
  }
}
