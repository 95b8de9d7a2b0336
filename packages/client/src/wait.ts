import type { RequestOptions } from './connection.ts';
import { DarkroomError, WaitTimeoutError } from './errors.ts';
import { backOffMs, sleep, TimeLimit } from './timing.ts';

/** Options of waiting for pictures. */
export interface WaitOptions extends Pick<RequestOptions, 'signal'> {
  /** Ten minutes by default. */
  timeoutMs?: number;
}

/** Options of making a record and waiting for it. */
export interface MakeOptions<T> extends WaitOptions, RequestOptions {
  /**
   * Called with the record once it is made: the service works on it also when the wait is aborted, and its id cancels
   * it.
   */
  onCreated?: (record: T) => void;
}

const defaultTimeoutMs = 600_000;

/**
 * Gives work a signal that aborts with the caller's, or when the time is over.
 * @param idOf the awaited id; undefined until the service has accepted it
 * @throws WaitTimeoutError, the reason of an aborted signal, or what the work throws.
 */
async function withinTime<T>(
  idOf: () => string | undefined,
  { signal, timeoutMs = defaultTimeoutMs }: WaitOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new TimeLimit();
  limit.start(timeoutMs);
  try {
    return await work(limit.or(signal));
  } catch (error) {
    throw limit.endedWith(error) ? new WaitTimeoutError(idOf(), timeoutMs) : error;
  } finally {
    limit.end();
  }
}

/**
 * Polls, less and less often, until there is a result.
 * @param read returns undefined before that.
 * @throws DarkroomError with a sentence of its own if it is deleted meanwhile; WaitTimeoutError, the reason of an
 * aborted signal, or what `read` throws.
 */
export function waitFor<T>(
  id: string,
  options: WaitOptions,
  read: (more: RequestOptions) => Promise<T | undefined>,
): Promise<T> {
  return withinTime(
    () => id,
    options,
    async (signal) => {
      for (let n = 0; ; n++) {
        const found = await read({ signal }).catch((error: unknown) => {
          throw n > 0 && isMissing(error) ? deletedError(id, error) : error;
        });
        if (found !== undefined) return found;
        await sleep(backOffMs(n, 200, 3000), signal);
      }
    },
  );
}

/**
 * Makes a record and waits for it, both within one time.
 * @throws WaitTimeoutError, the reason of an aborted signal, or what making it and waiting for it throw.
 */
export function makeAndWait<T extends { id: string }, B>(
  { create, wait }: Makers<T, B>,
  body: B,
  { onCreated, ...options }: MakeOptions<T>,
): Promise<T> {
  let id: string | undefined;
  return withinTime(
    () => id,
    options,
    async (signal) => {
      const record = await create(body, { ...options, signal });
      ({ id } = record);
      onCreated?.(record);
      return wait(id, { ...options, signal });
    },
  );
}

interface Makers<T, B> {
  create: (body: B, more: RequestOptions) => Promise<T>;
  wait: (id: string, options: WaitOptions) => Promise<T>;
}

/** A proxy's answer has no code. */
const isMissing = (error: unknown): error is DarkroomError =>
  error instanceof DarkroomError && error.status === 404 && error.code !== undefined;

function deletedError(id: string, cause: DarkroomError): DarkroomError {
  const { status, code, requestId } = cause;
  return new DarkroomError(`${id} was deleted while it was waited for.`, status, code, { requestId, cause });
}
