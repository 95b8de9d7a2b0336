import { DrawingLock } from './drawing-lock';

describe(DrawingLock.name, () => {
  it('draws a suspected task when all others are drawn, and is taken until it has ended', async () => {
    const lock = new DrawingLock();
    const { signal } = new AbortController();
    const drawn = [await lock.begin(false, signal), await lock.begin(false, signal)];
    let end: (() => void) | undefined;
    const suspect = lock.begin(true, signal).then((ended) => (end = ended));
    expect(lock.isTakenAlone).toBe(true);
    drawn[0]();
    drawn[0]();
    await Promise.resolve();
    expect(end).toBeUndefined();
    drawn[1]();
    await suspect;
    expect(lock.isTakenAlone).toBe(true);
    end!();
    expect(lock.isTakenAlone).toBe(false);
  });

  it('is free again when a suspected task is given up while it waits', async () => {
    const lock = new DrawingLock();
    await lock.begin(false, new AbortController().signal);
    const aborter = new AbortController();
    const suspect = lock.begin(true, aborter.signal);
    aborter.abort();
    await expect(suspect).rejects.toThrow('given up');
    expect(lock.isTakenAlone).toBe(false);
  });
});
