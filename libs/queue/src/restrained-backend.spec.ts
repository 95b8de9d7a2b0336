import type { BackendFactory, IQueueBackend } from 'bullmq';
import { restrained } from './restrained-backend';

/** A back end that refuses every job for as long as it is told to. */
class FakeBackend {
  isReadOnly = true;
  asked = 0;

  moveToActive = async (): Promise<unknown[]> => {
    this.asked++;
    if (this.isReadOnly) throw new Error('cannot execute UPDATE in a read-only transaction');
    return [];
  };
  waitForJob = async (): Promise<null> => null;
  disconnectBlocking = async (): Promise<void> => undefined;
  close = async (): Promise<void> => undefined;
}

describe(restrained.name, () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const start = () => {
    const fake = new FakeBackend();
    const create = (() => fake as unknown as IQueueBackend) as unknown as BackendFactory<IQueueBackend>;
    const backend = restrained(create)('images', {} as never);
    const state = { isEnded: false };
    /** As a worker does: at once, again and again. */
    const worker = (async () => {
      while (!state.isEnded) {
        await backend.waitForJob(5);
        await backend.moveToActive('token').catch(() => undefined);
        if (!fake.isReadOnly) return;
      }
    })();
    return { fake, backend, state, worker };
  };

  it('has a worker ask a few times a minute where it would a thousand times a second', async () => {
    const { fake, backend, state, worker } = start();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(fake.asked).toBeGreaterThan(10);
    expect(fake.asked).toBeLessThan(35);
    state.isEnded = true;
    await backend.disconnectBlocking();
    await worker;
  });

  it('has it go on within seconds when all is well again', async () => {
    const { fake, worker } = start();
    await jest.advanceTimersByTimeAsync(60_000);
    fake.isReadOnly = false;
    await jest.advanceTimersByTimeAsync(5_000);
    await expect(worker).resolves.toBeUndefined();
  });

  it('keeps no worker from ending', async () => {
    const { backend, state, worker } = start();
    await jest.advanceTimersByTimeAsync(60_000);
    state.isEnded = true;
    await backend.close();
    await expect(worker).resolves.toBeUndefined();
  });
});
