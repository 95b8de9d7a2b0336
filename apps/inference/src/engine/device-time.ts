/**
 * Device time that each owner has used, which decides whose turn it is. Failed and canceled work counts too. Idle time
 * earns nothing: an owner who comes, or comes back, starts at the virtual time, if it has used less. The virtual time
 * is what the owner whose turn it is has used, and it never falls.
 * Source: start-time fair queuing (Goyal, Vin, Cheng 1996).
 */
export class DeviceTime {
  private readonly usedMs = new Map<string, number>();
  /** Number of tasks of each owner who has any. */
  private readonly tasks = new Map<string, number>();
  /** The largest device time, in milliseconds, that an owner had used when its turn began. */
  private virtualTime = 0;

  taskAdded(owner: string): void {
    const count = this.tasks.get(owner) ?? 0;
    if (count === 0) this.usedMs.set(owner, Math.max(this.usedMsOf(owner), this.virtualTime));
    this.tasks.set(owner, count + 1);
  }

  /** An owner has one task less. Its time is kept while it is above the virtual time and any owner has tasks. */
  taskEnded(owner: string): void {
    const left = this.tasks.get(owner)! - 1;
    if (left > 0) this.tasks.set(owner, left);
    else this.tasks.delete(owner);
    for (const [other, ms] of this.usedMs)
      if (!this.tasks.has(other) && (this.tasks.size === 0 || ms <= this.virtualTime)) this.usedMs.delete(other);
  }

  turnBegan(owner: string): void {
    this.virtualTime = Math.max(this.virtualTime, this.usedMsOf(owner));
  }

  charge(owner: string, ms: number): void {
    this.usedMs.set(owner, this.usedMsOf(owner) + ms);
  }

  /** Device time that an owner has used, in milliseconds. An owner without any starts at the virtual time. */
  usedMsOf(owner: string): number {
    return this.usedMs.get(owner) ?? this.virtualTime;
  }
}
