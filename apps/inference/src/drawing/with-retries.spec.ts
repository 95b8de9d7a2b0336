import { withRetries } from './with-retries';

describe(withRetries.name, () => {
  /** A database that is away for so long. */
  class Outage {
    waitedMs = 0;
    constructor(private readonly ms: number) {}

    readonly write = async (): Promise<string> => {
      if (this.waitedMs < this.ms) throw new Error('The database is away.');
      return 'written';
    };
    readonly wait = async (ms: number): Promise<void> => void (this.waitedMs += ms);
  }

  it.each([
    ['some seconds', 4_000, undefined],
    ['a minute, with patience', 60_000, new AbortController().signal],
  ])('bears an outage of %s', async (_, ms, patience) => {
    const outage = new Outage(ms);
    await expect(withRetries(outage.write, patience, outage.wait)).resolves.toBe('written');
  });

  it.each([
    [undefined, 5_000],
    [new AbortController().signal, 130_000],
  ])('gives up at last', async (patience, mostMs) => {
    const outage = new Outage(Infinity);
    await expect(withRetries(outage.write, patience, outage.wait)).rejects.toThrow('The database is away.');
    expect(outage.waitedMs).toBeLessThan(mostMs);
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
