import { ClockWatch, maxSkewMs } from './clock-watch';

describe(ClockWatch.name, () => {
  const databaseNow = 1_000_000;
  let ours: number;
  let said: string[];
  const watch = (answer = async (): Promise<number> => databaseNow): ClockWatch =>
    new ClockWatch({ databaseNow: answer, now: () => ours, report: (sentence) => said.push(sentence) });

  beforeEach(() => {
    ours = databaseNow;
    said = [];
  });

  it.each([
    [0, true],
    [maxSkewMs, true],
    [-maxSkewMs, true],
    [maxSkewMs + 1, false],
    [-maxSkewMs - 1, false],
    [60_000, false],
    [-60_000, false],
  ])('of a machine that is %i ms ahead: %s', async (ahead, agrees) => {
    const clock = watch();
    ours += ahead;
    expect(await clock.check()).toBe(ahead);
    expect(clock.agrees).toBe(agrees);
  });

  it('does not mistake a slow response for a wrong clock', async () => {
    const clock = watch(async () => {
      ours += 30_000;
      return databaseNow + 15_000;
    });
    await clock.check();
    expect(clock.agrees).toBe(true);
  });

  it('keeps its last result while the database is away', async () => {
    let isAway = false;
    const clock = watch(async () => {
      if (isAway) throw new Error('away');
      return databaseNow;
    });
    ours += 60_000;
    await clock.check();
    isAway = true;
    await clock.check();
    expect(clock.agrees).toBe(false);
  });

  it('says once that it has become wrong, and that it is right again', async () => {
    const clock = watch();
    ours += 60_000;
    await clock.check();
    await clock.check();
    expect([clock.agrees, said]).toEqual([false, [expect.stringContaining('60.0 s ahead')]]);
    ours = databaseNow;
    await clock.check();
    expect(clock.agrees).toBe(true);
    expect(said).toHaveLength(2);
  });
});
