import type { RequestOptions } from './connection';
import { WaitTimeoutError } from './errors';
import { backOffMs, rest } from './rest';

/** Of waiting for pictures. */
export interface WaitOptions extends Pick<RequestOptions, 'signal'> {
  /** Ten minutes by default. */
  timeoutMs?: number;
}

const defaultTimeoutMs = 600_000;

/**
 * Reads again and again, less and less often, until what was read is done.
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
      await rest(backOffMs(n, 200, 3000), either);
    }
  } catch (error) {
    if (timeout.aborted && error === timeout.reason) throw new WaitTimeoutError(id, timeoutMs);
    throw error;
  }
}
