import { PassThrough } from 'node:stream';
import { PictureReaders } from './picture-readers';

describe(PictureReaders.name, () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
  afterEach(() => jest.useRealTimers());

  const options = { most: 2, graceMs: 100 };
  const reader = (readers: PictureReaders, ownerId = 'owner') => {
    const stream = new PassThrough();
    const found = { stream, isCut: false };
    readers.add(ownerId, stream, () => (found.isCut = true));
    return found;
  };
  const read = async ({ stream }: { stream: PassThrough }, bytes: number): Promise<void> => {
    stream.write(Buffer.alloc(bytes));
    await new Promise(setImmediate);
  };

  it('forgets those that have ended', async () => {
    const readers = new PictureReaders(options);
    const [ended, other] = [reader(readers), reader(readers)];
    ended.stream.destroy();
    await new Promise(setImmediate);
    expect(readers.size).toBe(1);
    reader(readers);
    expect([ended.isCut, other.isCut]).toEqual([false, false]);
  });

  it('lets the slowest make room, but for those that have only begun', async () => {
    const readers = new PictureReaders(options);
    const [slow, fast] = [reader(readers), reader(readers)];
    await read(slow, 10);
    await read(fast, 100);
    jest.advanceTimersByTime(101);
    const next = reader(readers);
    expect([slow.isCut, fast.isCut, next.isCut]).toEqual([true, false, false]);
    reader(readers);
    expect([fast.isCut, next.isCut]).toEqual([true, false]);
    expect(readers.size).toBe(2);
  });

  it('lets the first make room where all have only begun', () => {
    const readers = new PictureReaders(options);
    const [first, second] = [reader(readers), reader(readers)];
    const third = reader(readers);
    expect([first.isCut, second.isCut, third.isCut]).toEqual([true, false, false]);
  });

  it('takes the room of the owner whose pictures have the most readers, however little it was used', () => {
    const readers = new PictureReaders({ ...options, most: 4 });
    const other = reader(readers, 'other');
    const many = Array.from({ length: 20 }, () => reader(readers, 'many'));
    expect(many.filter(({ isCut }) => !isCut)).toHaveLength(3);
    const another = reader(readers, 'other');
    expect(many.filter(({ isCut }) => !isCut)).toHaveLength(2);
    const third = reader(readers, 'third');
    expect([other, another, third].map(({ isCut }) => isCut)).toEqual([true, false, false]);
    expect(readers.size).toBe(4);
  });
});
