import { PassThrough } from 'node:stream';
import { PictureReaders } from './picture-readers';

describe(PictureReaders.name, () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
  afterEach(() => jest.useRealTimers());

  const options = { most: 2, silenceMs: 400, graceMs: 100 };
  const reader = (readers: PictureReaders) => {
    const stream = new PassThrough();
    const found = { stream, isCut: false, isTaken: false };
    found.isTaken = readers.add(stream, () => (found.isCut = true));
    return found;
  };
  const read = async ({ stream }: { stream: PassThrough }, bytes: number): Promise<void> => {
    stream.write(Buffer.alloc(bytes));
    await new Promise(setImmediate);
  };

  it('cuts off one that takes nothing for a while, and forgets those that have ended', async () => {
    const readers = new PictureReaders(options);
    const [idle, busy] = [reader(readers), reader(readers)];
    jest.advanceTimersByTime(300);
    await read(busy, 10);
    jest.advanceTimersByTime(300);
    expect([idle.isCut, busy.isCut]).toEqual([true, false]);
    busy.stream.destroy();
    await new Promise(setImmediate);
    expect(readers.size).toBe(0);
  });

  it('lets the slowest make room, but none that has only begun', async () => {
    const readers = new PictureReaders(options);
    const [slow, fast] = [reader(readers), reader(readers)];
    expect(reader(readers).isTaken).toBe(false);
    await read(slow, 10);
    await read(fast, 100);
    jest.advanceTimersByTime(101);
    expect(reader(readers).isTaken).toBe(true);
    expect([slow.isCut, fast.isCut]).toEqual([true, false]);
    expect(readers.size).toBe(2);
  });
});
