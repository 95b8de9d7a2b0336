import { withRetries } from './with-retries';

// Jest's fake time does not reach this module of Node's.
jest.mock('node:timers/promises', () => ({
  setTimeout: async (ms: number, _: undefined, { signal }: { signal?: AbortSignal }) => {
    signal?.throwIfAborted();
    jest.advanceTimersByTime(ms);
  },
}));

describe(withRetries.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  /** A write to a database that is away for so long. */
  const writeAfter = (outageMs: number) => {
    const backAt = Date.now() + outageMs;
    return async (): Promise<string> => {
      if (Date.now() < backAt) throw new Error('The database is away.');
      return 'written';
    };
  };

  it.each([
    ['some seconds', 4_000, undefined],
    ['a minute, with patience', 60_000, new AbortController().signal],
  ])('bears an outage of %s', async (_, ms, patience) => {
    await expect(withRetries(writeAfter(ms), patience)).resolves.toBe('written');
  });

  it.each([
    [undefined, 5_000],
    [new AbortController().signal, 130_000],
  ])('gives up at last', async (patience, mostMs) => {
    const began = Date.now();
    await expect(withRetries(writeAfter(Infinity), patience)).rejects.toThrow('The database is away.');
    expect(Date.now() - began).toBeLessThan(mostMs);
  });

  it('gives up at once with the last error when its patience ends', async () => {
    const patience = new AbortController();
    let tries = 0;
    const work = withRetries(async () => {
      tries++;
      patience.abort();
      throw new Error('The database is away.');
    }, patience.signal);
    await expect(work).rejects.toThrow('The database is away.');
    expect(tries).toBe(1);
  });
});
