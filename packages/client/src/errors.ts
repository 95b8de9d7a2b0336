import type { Generation, Problem } from './types';

/** The service refused a request, or could not be reached in all tries. */
export class DarkroomError extends Error {
  override name = 'DarkroomError';

  constructor(
    message: string,
    /** HTTP status; 0 when there was no answer. */
    readonly status: number,
    /** The service's stable name of the error; undefined when the answer was not the service's. */
    readonly code?: string,
    /** What is wrong with which field. */
    readonly errors: NonNullable<Problem['errors']> = [],
    /** Names the request in the service's logs. */
    readonly requestId?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A Generation ended without its pictures. */
export class GenerationFailedError extends Error {
  override name = 'GenerationFailedError';

  constructor(readonly generation: Generation) {
    super(
      `The Generation ${generation.id} has ${generation.status}${generation.error ? `: ${generation.error}` : '.'}`,
    );
  }
}

/** What was waited for did not come in time. It goes on in the service. */
export class WaitTimeoutError extends Error {
  override name = 'WaitTimeoutError';

  constructor(
    readonly id: string,
    timeoutMs: number,
  ) {
    super(`${id} was not finished after ${timeoutMs} ms.`);
  }
}
