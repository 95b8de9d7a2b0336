import { setImmediate } from 'node:timers/promises';
import { SerialTurns } from './list.interceptor';

describe(SerialTurns.name, () => {
  it('does one piece at a time, and lets a key with one piece pass by one with many', async () => {
    const turns = new SerialTurns();
    const done: string[] = [];
    let running = 0;
    const piece = (key: string, name: string) =>
      turns.run(key, async () => {
        expect(++running).toBe(1);
        await setImmediate();
        running--;
        done.push(name);
      });
    await Promise.all([
      ...['a1', 'a2', 'a3', 'a4'].map((name) => piece('a', name)),
      piece('b', 'b1'),
      piece('c', 'c1'),
    ]);
    expect(done.slice(0, 3).sort()).toEqual(['a1', 'b1', 'c1']);
    expect(done.slice(3)).toEqual(['a2', 'a3', 'a4']);
  });

  it('does the pieces of one work before the next work of its key, with those of other keys between', async () => {
    const turns = new SerialTurns();
    const done: string[] = [];
    const work = (key: string, name: string) =>
      turns.runSeveral(key, async (piece) => {
        for (const part of [1, 2, 3])
          await piece(async () => {
            await setImmediate();
            done.push(`${name}.${part}`);
          });
      });
    await Promise.all([work('a', 'a1'), work('a', 'a2'), work('b', 'b1')]);
    expect(done.filter((name) => name.startsWith('a'))).toEqual(['a1.1', 'a1.2', 'a1.3', 'a2.1', 'a2.2', 'a2.3']);
    expect(done.indexOf('b1.3')).toBeLessThan(done.indexOf('a1.3') + 2);
  });

  it('goes on after a piece that failed', async () => {
    const turns = new SerialTurns();
    const failing = turns.run('a', async () => {
      throw new Error('no');
    });
    await expect(
      Promise.all([expect(failing).rejects.toThrow('no'), turns.run('a', async () => 1)]),
    ).resolves.toContain(1);
  });
});
