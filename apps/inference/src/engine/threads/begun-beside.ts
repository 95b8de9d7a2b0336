/**
 * How many pieces of work may begin beside one that is under way. A piece that lasts longer counts as hanging: the
 * engine then begins no more, falls silent, and is replaced.
 */
const most = 300;

/** Counts the pieces of work that begin beside one. */
export class BegunBeside {
  private count = 0;

  /** Whether another may begin: not beside a piece that hangs. */
  get mayBegin(): boolean {
    return this.count < most;
  }

  /** Another begins. */
  note(): void {
    this.count++;
  }
}
