/** Does a piece of work when no other is being done. */
export type Piece = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Work that is done one piece at a time, and of each key no two pieces before another key's one: a key that asks for much waits
 * for itself.
 */
export class Turns {
  private readonly lastOf = new Map<string, Promise<unknown>>();
  private last: Promise<unknown> = Promise.resolve();

  /** Does a piece of work of a key when its turn has come. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.takeSeveral(key, (piece) => piece(work));
  }

  /** Does several pieces of a key's work, each when its turn among the keys has come, before the key's next work begins. */
  async takeSeveral<T>(key: string, work: (piece: Piece) => Promise<T>): Promise<T> {
    const turn = after(this.lastOf.get(key), () =>
      work((one) => {
        const mine = after(this.last, one);
        this.last = mine;
        return mine;
      }),
    );
    this.lastOf.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.lastOf.get(key) === turn) this.lastOf.delete(key);
    }
  }
}

async function after<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
  await before?.catch(() => undefined);
  return work();
}
