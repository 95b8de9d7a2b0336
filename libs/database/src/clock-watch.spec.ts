import { ClockWatch, maxSkewMs } from './clock-watch';

class Consumer {
  state: 'idle' | 'running' | 'paused' = 'idle';
  isRunning = (): boolean => this.state === 'running';
  isPaused = (): boolean => this.state === 'paused';
  run = async (): Promise<void> => void (this.state = 'running');
  pause = async (): Promise<void> => void (this.state = 'paused');
  resume = async (): Promise<void> => void (this.state = 'running');
}

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

  it('pauses its consumers, logs that once, and resumes them', async () => {
    const clock = watch();
    const consumer = new Consumer();
    clock.addConsumer(consumer, fail);
    expect(consumer.state).toBe('running');
    ours += 60_000;
    await clock.check();
    await clock.check();
    expect(consumer.state).toBe('paused');
    expect(said).toEqual([expect.stringContaining('60.0 s ahead')]);
    ours = databaseNow;
    await clock.check();
    expect(consumer.state).toBe('running');
    expect(said).toHaveLength(2);
  });

  it('does not start its consumers before the clocks agree', async () => {
    const clock = watch();
    ours -= 60_000;
    await clock.check();
    const consumer = new Consumer();
    clock.addConsumer(consumer, fail);
    expect(consumer.state).toBe('paused');
    ours = databaseNow;
    await clock.check();
    expect(consumer.state).toBe('running');
  });

  it('leaves a released consumer alone', async () => {
    const clock = watch();
    const consumer = new Consumer();
    clock.addConsumer(consumer, fail)();
    ours += 60_000;
    await clock.check();
    expect(consumer.state).toBe('running');
  });
});

function fail(error: unknown): never {
  throw error;
}
