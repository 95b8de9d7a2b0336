/**
 * After a longer time without an answer, the contact was broken. A shorter break takes no worker's task: at worst a
 * heartbeat was due when it began, so the last one came 2 s earlier and the next one comes at its end. That is a
 * silence of 6 s + 2 s, and a worker counts as dead after 10 s.
 */
const breakMs = 6_000;

/**
 * Since when this process has been hearing from the database, and the database's time. What others have not written
 * says nothing about them unless they could write: during an outage all are silent.
 */
export class DatabaseContact {
  private since = 0;
  private last?: { databaseMs: number; atMs: number };

  /** @param now a clock that is never set, in milliseconds. */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** The database has just answered that this is its time, in milliseconds since the epoch. */
  noteAnswer(databaseMs: number): void {
    if (this.isBroken || this.hasJumped(databaseMs)) this.since = this.now();
    this.last = { databaseMs, atMs: this.now() };
  }

  /** How long the contact has lasted; 0 if there is none. */
  get heldMs(): number {
    return this.isBroken ? 0 : this.now() - this.since;
  }

  /** The database's time now, in milliseconds since the epoch: never ahead of it. */
  get databaseMs(): number {
    return this.last ? this.last.databaseMs + this.now() - this.last.atMs : 0;
  }

  /**
   * Whether the database's clock shows a break that ours does not: ours stops while the machine sleeps, and the
   * database's may be set. Either makes heartbeats look old.
   */
  private hasJumped(databaseMs: number): boolean {
    return databaseMs - this.databaseMs > breakMs;
  }

  private get isBroken(): boolean {
    return this.last === undefined || this.now() - this.last.atMs > breakMs;
  }
}
