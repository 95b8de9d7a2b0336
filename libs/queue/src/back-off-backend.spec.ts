import type { BackendFactory, IQueueBackend } from 'bullmq';
import { withBackOff } from './back-off-backend';

/** A back end that rejects every request for a job while `isReadOnly`. */
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

describe(withBackOff.name, () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const start = () => {
    const fake = new FakeBackend();
    const create = (() => fake as unknown as IQueueBackend) as unknown as BackendFactory<IQueueBackend>;
    const backend = withBackOff(create)('images', {} as never);
    const state = { isEnded: false };
    /** Asks again and again without a wait, as a worker does. */
    const worker = (async () => {
      while (!state.isEnded) {
        await backend.waitForJob(5);
        await backend.moveToActive('token').catch(() => undefined);
        if (!fake.isReadOnly) return;
      }
    })();
    return { fake, backend, state, worker };
  };

  it('lets a worker ask a few times a minute instead of a thousand times a second', async () => {
    const { fake, backend, state, worker } = start();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(fake.asked).toBeGreaterThan(10);
    expect(fake.asked).toBeLessThan(35);
    state.isEnded = true;
    await backend.disconnectBlocking();
    await worker;
  });

  it('lets the worker continue within seconds after recovery', async () => {
    const { fake, worker } = start();
    await jest.advanceTimersByTimeAsync(60_000);
    fake.isReadOnly = false;
    await jest.advanceTimersByTimeAsync(5_000);
    await expect(worker).resolves.toBeUndefined();
  });

  it('does not delay the end of a worker', async () => {
    const { backend, state, worker } = start();
    await jest.advanceTimersByTimeAsync(60_000);
    state.isEnded = true;
    await backend.close();
    await expect(worker).resolves.toBeUndefined();
  });
});
