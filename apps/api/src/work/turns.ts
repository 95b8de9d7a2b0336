import { FairTurns } from './fair-turns';

/** Does a piece of work when no other is being done. */
export type Piece = <T>(work: () => Promise<T>) => Promise<T>;

/** What waits is bounded by the requests that a key may have at once. */
const unbounded = { perKey: Infinity, total: Infinity };

/**
 * Work that is done one piece at a time, and of each key no two pieces before another key's one: a key that asks for much waits
 * for itself.
 */
export class Turns {
  private readonly works = new FairTurns({ ...unbounded, concurrency: Infinity, keyConcurrency: 1 });
  private readonly pieces = new FairTurns(unbounded);

  /** Does a piece of work of a key when its turn has come. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.takeSeveral(key, (piece) => piece(work));
  }

  /** Does several pieces of a key's work, each when its turn among the keys has come, before the key's next work begins. */
  takeSeveral<T>(key: string, work: (piece: Piece) => Promise<T>): Promise<T> {
    return this.works.run(key, () => work((one) => this.pieces.run(key, one)));
  }
}
