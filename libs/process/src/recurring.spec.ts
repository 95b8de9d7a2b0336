import { setImmediate as turn } from 'node:timers/promises';
import { Recurring } from './recurring';

describe(Recurring.name, () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
  afterEach(() => jest.useRealTimers());

  const slowWork = () => {
    const ends: (() => void)[] = [];
    let running = 0;
    let most = 0;
    return {
      ends,
      most: () => most,
      running: () => running,
      work: async () => {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => ends.push(resolve));
        running--;
      },
    };
  };
  const pass = async (milliseconds: number): Promise<void> => {
    jest.advanceTimersByTime(milliseconds);
    await turn();
  };

  it('never begins a round before the previous one has ended', async () => {
    const slow = slowWork();
    new Recurring({ intervalMs: 1000, work: slow.work, onError: fail }).start();
    await pass(10_000);
    expect(slow.ends).toHaveLength(1);
    slow.ends[0]();
    await turn();
    await pass(1_500);
    expect(slow.ends).toHaveLength(2);
    expect(slow.most()).toBe(1);
  });

  it('continues after a failed round', async () => {
    const errors: string[] = [];
    let rounds = 0;
    const work = async (): Promise<void> => {
      rounds++;
      throw new Error(`round ${rounds}`);
    };
    new Recurring({ intervalMs: 1000, work, onError: ({ message }) => errors.push(message) }).start();
    await pass(1_500);
    await pass(1_500);
    expect(errors).toEqual(['round 1', 'round 2']);
  });

  it('waits for the current round when it is stopped, and begins no other', async () => {
    const slow = slowWork();
    const recurring = new Recurring({ intervalMs: 1000, work: slow.work, onError: fail });
    recurring.start();
    await pass(1_500);
    let isStopped = false;
    const stopped = recurring.stop().then(() => (isStopped = true));
    await turn();
    expect([isStopped, slow.running()]).toEqual([false, 1]);
    slow.ends[0]();
    await stopped;
    await pass(10_000);
    expect(slow.ends).toHaveLength(1);
  });

  it('aborts the signal of a round at the end, and reports no failure caused by it', async () => {
    const work = (signal: AbortSignal): Promise<void> =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('interrupted'))));
    const recurring = new Recurring({ intervalMs: 1000, work, onError: fail });
    recurring.start();
    await pass(1_500);
    await expect(recurring.stop()).resolves.toBeUndefined();
  });
});

function fail(error: Error): never {
  throw error;
}
