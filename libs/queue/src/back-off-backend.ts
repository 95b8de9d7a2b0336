import { BackOff } from '@app/process';
import type { BackendFactory, IQueueBackend } from 'bullmq';
import { withMethods } from './bullmq-internals';

const firstRestMs = 250;
const longestRestMs = 5_000;

/**
 * When its back end fails (a read-only database, a full disk), a worker asks for a job again at once, thousands of
 * times a second. Here each failure in a row reaches it later; when the worker ends, the delay is cut short.
 */
export function withBackOff<B extends IQueueBackend>(create: BackendFactory<B>): BackendFactory<B> {
  return (...parameters) => {
    const backend = create(...parameters);
    const resting = new Set<() => void>();
    let isEnding = false;
    const rest = (milliseconds: number): Promise<void> =>
      new Promise((resolve) => {
        if (isEnding) return resolve();
        const wake = (): void => {
          clearTimeout(timer);
          resting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, milliseconds);
        resting.add(wake);
      });
    const restrain = <A extends unknown[], T>(call: (...args: A) => Promise<T>): ((...args: A) => Promise<T>) => {
      const backOff = new BackOff(firstRestMs, longestRestMs);
      return async (...args) => {
        try {
          const result = await call(...args);
          backOff.reset();
          return result;
        } catch (error) {
          await rest(backOff.next());
          throw error;
        }
      };
    };
    const end = (): void => {
      isEnding = true;
      for (const wake of resting) wake();
    };
    return withMethods(backend, {
      moveToActive: restrain((token, name) => backend.moveToActive(token, name)),
      waitForJob: restrain((blockTimeout) => backend.waitForJob(blockTimeout)),
      disconnectBlocking: (wait) => {
        end();
        return backend.disconnectBlocking(wait);
      },
      close: (force) => {
        end();
        return backend.close(force);
      },
    });
  };
}
