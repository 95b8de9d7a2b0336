import { FairTurns } from './fair-turns';

/** Begins work that ends when told to. */
function workOf(turns: FairTurns, began: string[]) {
  const ends: (() => void)[] = [];
  const begin = (owner: string, name: string) =>
    turns.run(owner, () => {
      began.push(name);
      return new Promise<string>((resolve) => ends.push(() => resolve(name)));
    });
  const endNext = async () => {
    ends.shift()!();
    await new Promise(setImmediate);
  };
  return { begin, endNext };
}

describe(FairTurns.name, () => {
  it('lets owners take turns, however much one of them has waiting', async () => {
    const began: string[] = [];
    const { begin, endNext } = workOf(new FairTurns(1), began);
    const results = [
      ...['a1', 'a2', 'a3'].map((name) => begin('a', name)),
      ...['b1', 'b2'].map((name) => begin('b', name)),
    ];
    for (let i = 0; i < 5; i++) await endNext();
    expect(await Promise.all(results)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
    expect(began).toEqual(['a1', 'a2', 'b1', 'a3', 'b2']);
  });

  it('runs no more at once than it may', async () => {
    const began: string[] = [];
    const { begin, endNext } = workOf(new FairTurns(2), began);
    const results = ['a1', 'a2', 'a3'].map((name) => begin('a', name));
    expect(began).toEqual(['a1', 'a2']);
    for (let i = 0; i < 3; i++) await endNext();
    await Promise.all(results);
    expect(began).toHaveLength(3);
  });

  it('goes on after work that fails, and gives its place back', async () => {
    const turns = new FairTurns(1);
    const failing = turns.run('a', () => Promise.reject(new Error('no')));
    const waiting = turns.run('b', async () => 'b');
    await expect(failing).rejects.toThrow('no');
    expect(await waiting).toBe('b');
    expect(await turns.run('a', async () => 'a')).toBe('a');
  });
});
