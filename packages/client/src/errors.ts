import type { Generation, Problem } from './types.ts';

/** The service returned an error, or could not be reached in any attempt. */
export class DarkroomError extends Error {
  override name = 'DarkroomError';

  constructor(
    message: string,
    /** HTTP status; 0 if there was no response. */
    readonly status: number,
    /** The service's stable error code; undefined if another server answered. */
    readonly code?: string,
    /** What is wrong with which field. */
    readonly errors: NonNullable<Problem['errors']> = [],
    /** Identifies the request in the service's logs. */
    readonly requestId?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A Generation ended without pictures. */
export class GenerationFailedError extends Error {
  override name = 'GenerationFailedError';

  constructor(readonly generation: Generation) {
    super(
      `The Generation ${generation.id} has ${generation.status}${generation.error ? `: ${generation.error}` : '.'}`,
    );
  }
}

/** The result did not come in time. The service continues to work on it. */
export class WaitTimeoutError extends Error {
  override name = 'WaitTimeoutError';

  constructor(
    readonly id: string,
    timeoutMs: number,
  ) {
    super(`${id} was not finished after ${timeoutMs} ms.`);
  }
}

/** A webhook request is not from the service, was changed on its way, or is older than five minutes. */
export class WebhookVerificationError extends Error {
  override name = 'WebhookVerificationError';
}
