import { PostgresConnection, PostgresQueueBackend } from 'bullmq';
import type { IQueueBackend } from 'bullmq';
import { forgetFirstAttempt, withMethods } from './bullmq-internals';

/** Nobody listens there: an attempt to connect fails at once. */
const nowhere = { connectionString: 'postgres://nobody@127.0.0.1:1/none' };

describe(withMethods, () => {
  class Counting {
    #asked = 0;
    get asked(): number {
      return this.#asked;
    }
    moveToActive = async (): Promise<unknown[]> => ['theirs'];
    async isMaxed(): Promise<boolean> {
      this.#asked++;
      return false;
    }
  }

  it('has our methods and leaves theirs where they are', async () => {
    const theirs = new Counting();
    const ours = withMethods(theirs as unknown as IQueueBackend, { moveToActive: async () => ['ours'] });
    await expect(ours.moveToActive('token')).resolves.toEqual(['ours']);
    await expect(theirs.moveToActive()).resolves.toEqual(['theirs']);
    await expect(ours.isMaxed()).resolves.toBe(false);
    expect((ours as unknown as Counting).asked).toBe(1);
    expect(ours).toBeInstanceOf(Counting);
  });
});

describe('the private fields of BullMQ', () => {
  it('are those that we set', async () => {
    const connection = new PostgresConnection(nowhere);
    expect(connection).toHaveProperty('pgModule.Client');
    const backend = new PostgresQueueBackend(connection, 'images', { connection: nowhere });
    await expect(backend.waitUntilReady()).rejects.toThrow('ECONNREFUSED');
    for (const holder of [connection, backend]) {
      expect(holder).toHaveProperty('readyPromise', expect.any(Promise));
      forgetFirstAttempt(holder);
      expect(holder).toHaveProperty('readyPromise', undefined);
    }
    await expect(connection.getListenClient()).rejects.toThrow('ECONNREFUSED');
    expect(Object.keys(connection)).toContain('listenClientPromise');
    await backend.close();
  });
});
