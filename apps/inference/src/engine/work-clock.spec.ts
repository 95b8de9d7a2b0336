import { SharedClock } from './work-clock';

describe(SharedClock.name, () => {
  let now: number;
  let clock: SharedClock;

  beforeEach(() => {
    now = 1_000;
    clock = new SharedClock(() => now);
  });

  /** Begins a piece of work. @returns a function that ends it, and says what it took of the device, and what passed */
  function begin(fails = false): () => Promise<number[]> {
    let end = (): void => undefined;
    let times: number[] = [];
    const work = () =>
      new Promise<void>((resolve, reject) => (end = () => (fails ? reject(new Error('it fails')) : resolve())));
    const done = clock.during(work, (...took) => (times = took)).catch(() => undefined);
    return async () => {
      end();
      await done;
      return times;
    };
  }

  it('counts all time of what is done alone', async () => {
    const end = begin();
    now += 30;
    expect(await end()).toEqual([30, 30]);
    now += 100;
    const next = begin();
    now += 5;
    expect(await next()).toEqual([5, 5]);
  });

  it('gives each of those that are done at once its part, so that all together have the time that passed', async () => {
    const long = begin();
    now += 10;
    const short = begin(true);
    now += 20;
    expect(await short()).toEqual([10, 20]);
    now += 5;
    expect(await long()).toEqual([10 + 20 / 2 + 5, 35]);
  });
});
