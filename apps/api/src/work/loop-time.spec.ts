import { LoopTime } from './loop-time';

/** Takes the processor for a millisecond. */
function busy(): void {
  const end = performance.now() + 1;
  while (performance.now() < end);
}

describe(LoopTime.name, () => {
  it('lets the event loop have its turn between a few pieces, whoever they are of', async () => {
    const time = new LoopTime();
    let done = 0;
    let isOver = false;
    const most: number[] = [];
    const all = Promise.all(
      ['a', 'b', 'c', 'd', 'e'].map((key) => time.forEach(key, Array(20).fill(0), () => (busy(), done++))),
    ).then(() => (isOver = true));
    for (let before = 0; !isOver; before = done) {
      await new Promise(setImmediate);
      most.push(done - before);
    }
    await all;
    expect(done).toBe(100);
    expect(Math.max(...most)).toBeLessThanOrEqual(8);
  });

  it('lets keys take turns', async () => {
    const time = new LoopTime();
    const ended: string[] = [];
    const of = (key: string, pieces: number): Promise<unknown> =>
      time.forEach(key, Array(pieces).fill(0), busy).then(() => ended.push(key));
    await Promise.all([of('many', 200), of('many', 200), of('few', 10)]);
    expect(ended[0]).toBe('few');
  });

  it('rests for longer than it has worked where it is told to, and keeps nobody who has been served waiting for that', async () => {
    const time = new LoopTime(20);
    const ended: number[] = [];
    const startedAt = performance.now();
    const fiveMs = (): void => Array(5).fill(0).forEach(busy);
    const work = (): Promise<unknown> => time.forEach('a', [0], fiveMs).then(() => ended.push(performance.now()));
    await Promise.all([work(), work()]);
    expect(ended[1] - ended[0]).toBeGreaterThan(50);
    expect(ended[0] - startedAt).toBeLessThan(ended[1] - ended[0]);
  });

  it('keeps the order, and fails with a piece that fails', async () => {
    const time = new LoopTime();
    const seen: unknown[] = [];
    await time.forEach('a', ['x', 'y'], (one, index) => seen.push(one, index));
    expect(seen).toEqual(['x', 0, 'y', 1]);
    const broken = (): never => {
      throw new Error('broken');
    };
    await expect(time.forEach('a', [1], broken)).rejects.toThrow('broken');
    await time.forEach('a', [3], (one) => seen.push(one));
    expect(seen.at(-1)).toBe(3);
  });
});
