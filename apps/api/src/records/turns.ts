/**
 * Work that is done one piece at a time, and of each key no two pieces before another key's one: a key that asks for much waits
 * for itself.
 */
export class Turns {
  private readonly lastOf = new Map<string, Promise<unknown>>();
  private last: Promise<unknown> = Promise.resolve();

  /** Does a piece of work of a key when its turn has come. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = after(this.lastOf.get(key), () => {
      const mine = after(this.last, work);
      this.last = mine;
      return mine;
    });
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
