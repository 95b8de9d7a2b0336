import type { RequestOptions } from './connection.ts';
import { WaitTimeoutError } from './errors.ts';
import { backOffMs, sleep } from './sleep.ts';

/** Options of waiting for pictures. */
export interface WaitOptions extends Pick<RequestOptions, 'signal'> {
  /** Ten minutes by default. */
  timeoutMs?: number;
}

const defaultTimeoutMs = 600_000;

/**
 * Polls, less and less often, until the result is done.
 * @throws WaitTimeoutError, or the reason of an aborted signal.
 */
export async function waitUntil<T extends { id: string }>(
  read: (signal: AbortSignal) => Promise<T>,
  isDone: (found: T) => boolean,
  id: string,
  { signal, timeoutMs = defaultTimeoutMs }: WaitOptions = {},
): Promise<T> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([...(signal ? [signal] : []), timeout]);
  try {
    for (let n = 0; ; n++) {
      const found = await read(either);
      if (isDone(found)) return found;
      await sleep(backOffMs(n, 200, 3000), either);
    }
  } catch (error) {
    if (timeout.aborted && error === timeout.reason) throw new WaitTimeoutError(id, timeoutMs);
    throw error;
  }
}
