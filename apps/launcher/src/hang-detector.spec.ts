import { HangDetector, hangTimeoutMs } from './hang-detector';

describe(HangDetector.name, () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const start = () => {
    const world = { lives: false, answerMs: 0, now: 0, silences: 0 };
    const watch = new HangDetector('http://127.0.0.1:1/health/live', () => world.silences++, {
      ask: async () => {
        const { lives, answerMs } = world;
        if (answerMs > 0) await new Promise((resolve) => setTimeout(resolve, answerMs));
        return lives;
      },
      now: () => world.now,
    });
    watch.start();
    /** Answers once per second, as long as this process runs. */
    const pass = async (milliseconds: number): Promise<void> => {
      for (let gone = 0; gone < milliseconds; gone += 1000) {
        world.now += 1000;
        await jest.advanceTimersByTimeAsync(1000);
      }
    };
    return { world, watch, pass };
  };

  it('reports once a process that answered and was then silent for the whole time limit', async () => {
    const { world, pass } = start();
    world.lives = true;
    await pass(60_000);
    world.lives = false;
    await pass(hangTimeoutMs - 1000);
    expect(world.silences).toBe(0);
    await pass(2_000);
    expect(world.silences).toBe(1);
    await pass(60_000);
    expect(world.silences).toBe(1);
  });

  it('leaves a starting process alone, however long it takes', async () => {
    const { world, pass } = start();
    await pass(600_000);
    expect(world.silences).toBe(0);
  });

  it('ignores a silence that ends in time', async () => {
    const { world, pass } = start();
    for (let i = 0; i < 5; i++) {
      world.lives = true;
      await pass(2_000);
      world.lives = false;
      await pass(hangTimeoutMs - 2_000);
    }
    expect(world.silences).toBe(0);
  });

  it('leaves a process alone that answers slowly', async () => {
    const { world, pass } = start();
    world.answerMs = hangTimeoutMs - 3_000;
    world.lives = true;
    await pass(300_000);
    expect(world.silences).toBe(0);
    world.lives = false;
    await pass(2 * hangTimeoutMs);
    expect(world.silences).toBe(1);
  });

  it('starts the time limit again after this process was suspended', async () => {
    const { world, pass } = start();
    world.lives = true;
    await pass(5_000);
    world.lives = false;
    await pass(10_000);
    world.now += 3_600_000;
    await pass(hangTimeoutMs - 1000);
    expect(world.silences).toBe(0);
    await pass(2_000);
    expect(world.silences).toBe(1);
  });

  it('reports nothing after it was stopped', async () => {
    const { world, watch, pass } = start();
    world.lives = true;
    await pass(2_000);
    world.lives = false;
    watch.stop();
    await pass(60_000);
    expect(world.silences).toBe(0);
  });
});
