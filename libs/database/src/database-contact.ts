/**
 * Without an answer for longer than this, the contact was broken. It must be shorter than the silence after which a
 * worker counts as dead, less one heartbeat: a shorter break takes no worker's task.
 */
const breakMs = 6_000;

/**
 * For how long this process has been hearing from the database, and the database's time. What others have not written
 * says nothing about them unless they could write: while the database was away, all of them were silent.
 */
export class DatabaseContact {
  private since = 0;
  private last?: { databaseMs: number; atMs: number };

  /** @param now a clock that is never set, in milliseconds. */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** The database has just answered that this is its time, in milliseconds since the epoch. */
  heard(databaseMs: number): void {
    if (this.isBroken) this.since = this.now();
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

  private get isBroken(): boolean {
    return this.last === undefined || this.now() - this.last.atMs > breakMs;
  }
}
