import { FairTurns, TurnsFullError } from './fair-turns';

/** Work that ends when the test decides, and records its start. */
class Desk {
  readonly started: string[] = [];
  private readonly ends: (() => void)[] = [];

  work = (name: string) => async (): Promise<string> => {
    this.started.push(name);
    await new Promise<void>((end) => this.ends.push(end));
    return name;
  };

  async endOne(): Promise<void> {
    await new Promise(setImmediate);
    this.ends.shift()?.();
  }
}

describe(FairTurns.name, () => {
  const bounds = { concurrency: 1, perKey: 3, total: 5 };

  it('lets keys take turns, whoever came first', async () => {
    const desk = new Desk();
    const turns = new FairTurns(bounds);
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1'].map((name) => turns.run(name[0], desk.work(name)));
    for (let n = 0; n < all.length; n++) await desk.endOne();
    expect(desk.started).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'a4']);
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'c1']);
  });

  it('lets one leave the line, and then there is a place in it', async () => {
    const turns = new FairTurns({ concurrency: 1, perKey: 1, total: 1 });
    const end = await turns.take('a');
    const leaving = new AbortController();
    const left = turns.take('a', leaving.signal);
    await expect(turns.take('a')).rejects.toThrow(TurnsFullError);
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await expect(turns.take('a', leaving.signal)).rejects.toThrow('gone');
    const next = turns.take('a');
    end();
    (await next)();
    // A granted turn is kept.
    const served = new AbortController();
    const last = await turns.take('b', served.signal);
    served.abort();
    last();
    expect(await turns.run('a', () => Promise.resolve('served'))).toBe('served');
  });

  it('runs as many at a time as it may', async () => {
    const desk = new Desk();
    const turns = new FairTurns({ ...bounds, concurrency: 2 });
    const all = ['a1', 'a2', 'a3'].map((name) => turns.run(name[0], desk.work(name)));
    await new Promise(setImmediate);
    expect(desk.started).toEqual(['a1', 'a2']);
    for (let n = 0; n < all.length; n++) await desk.endOne();
    await Promise.all(all);
  });

  it('runs of one key no more at a time than it may, and others meanwhile', async () => {
    const desk = new Desk();
    const turns = new FairTurns({ ...bounds, concurrency: Infinity, keyConcurrency: 2 });
    const all = ['a1', 'a2', 'a3', 'a4', 'b1'].map((name) => turns.run(name[0], desk.work(name)));
    await new Promise(setImmediate);
    expect(desk.started).toEqual(['a1', 'a2', 'b1']);
    for (let n = 0; n < all.length; n++) await desk.endOne();
    expect(desk.started).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
    await Promise.all(all);
  });

  it('ends a turn once', async () => {
    const turns = new FairTurns({ ...bounds, concurrency: 1 });
    const end = await turns.take('a');
    end();
    end();
    await turns.take('b');
    const desk = new Desk();
    void turns.run('c', desk.work('c1'));
    await new Promise(setImmediate);
    expect(desk.started).toEqual([]);
  });

  it('refuses what a key, or all together, have too much of', async () => {
    const desk = new Desk();
    const turns = new FairTurns(bounds);
    const all = ['a1', 'a2', 'a3', 'a4'].map((name) => turns.run(name[0], desk.work(name)));
    await expect(turns.run('a', desk.work('a5'))).rejects.toThrow(TurnsFullError);
    all.push(turns.run('b', desk.work('b1')), turns.run('b', desk.work('b2')));
    await expect(turns.run('c', desk.work('c1'))).rejects.toThrow('Too much waits.');
    for (let n = 0; n < all.length; n++) await desk.endOne();
    await Promise.all(all);
    expect(desk.started).not.toContain('a5');
  });

  it('goes on after work that failed', async () => {
    const turns = new FairTurns(bounds);
    const failed = turns.run('a', () => Promise.reject(new Error('broken')));
    const next = turns.run('a', () => Promise.resolve('done'));
    await expect(failed).rejects.toThrow('broken');
    expect(await next).toBe('done');
  });
});
