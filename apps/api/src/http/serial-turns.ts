import { FairTurns } from '@app/process';

/** Runs work when no other is running. */
export type RunTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** The number of requests that a key may have at once limits what waits. */
const unbounded = { perKey: Infinity, total: Infinity };

/**
 * Runs work one piece at a time. Between two pieces of one key, other waiting keys get a turn: a key with much work
 * waits only for itself.
 */
export class SerialTurns {
  private readonly works = new FairTurns({ ...unbounded, concurrency: Infinity, keyConcurrency: 1 });
  private readonly pieces = new FairTurns(unbounded);

  /** Runs a piece of a key's work when its turn has come. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.runSeveral(key, (runTurn) => runTurn(work));
  }

  /** Runs several pieces of a key's work, each when its key's turn has come, before the key's next work begins. */
  runSeveral<T>(key: string, work: (runTurn: RunTurn) => Promise<T>): Promise<T> {
    return this.works.run(key, () => work((one) => this.pieces.run(key, one)));
  }
}
