import { setImmediate } from 'node:timers/promises';
import { LoopTime } from './loop-time';

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
      await setImmediate();
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
    const pauses: { end: () => void; ms?: number }[] = [];
    const setTimer = ((end: () => void, ms?: number) => pauses.push({ end, ms })) as unknown as typeof setTimeout;
    const timer = jest.spyOn(globalThis, 'setTimeout').mockImplementation(setTimer);
    try {
      const time = new LoopTime(20);
      const worked: string[] = [];
      const work = (name: string): Promise<void> =>
        time.forEach('a', [name], () => {
          Array(5).fill(0).forEach(busy);
          worked.push(name);
        });
      const [first, second] = [work('first'), work('second')];
      await first;
      await setImmediate();
      expect(worked).toEqual(['first']);
      expect(pauses).toHaveLength(1);
      expect(pauses[0].ms).toBeGreaterThanOrEqual(100);
      pauses[0].end();
      await second;
      expect(worked).toEqual(['first', 'second']);
    } finally {
      timer.mockRestore();
    }
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
