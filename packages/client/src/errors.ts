import type { Finetune, Generation, Problem, Prompt, PromptStatus } from './types.ts';

interface Details extends ErrorOptions {
  errors?: Problem['errors'];
  requestId?: string;
  retryAfter?: number;
}

/** The service returned an error, or could not be reached in any attempt. */
export class DarkroomError extends Error {
  override name = 'DarkroomError';

  /** Faults of fields. */
  readonly errors: NonNullable<Problem['errors']>;
  /** Identifies the request in the service's logs. */
  readonly requestId?: string;
  /** Seconds after which the request may be repeated; undefined if the service does not say. */
  readonly retryAfter?: number;

  constructor(
    message: string,
    /** HTTP status; 0 if there was no response. */
    readonly status: number,
    /** The service's stable error code; undefined if another server answered. */
    readonly code?: string,
    { errors = [], requestId, retryAfter, ...options }: Details = {},
  ) {
    super(message, options);
    this.errors = errors;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

/** A Generation ended without pictures. */
export class GenerationFailedError extends Error {
  override name = 'GenerationFailedError';

  constructor(readonly generation: Generation) {
    super(`The Generation ${generation.id} ${endOf(generation.status, generation.error)}`);
  }
}

/** A Prompt ended without a picture. Its record has no status, so the error has it. */
export class PromptFailedError extends Error {
  override name = 'PromptFailedError';

  constructor(
    readonly prompt: Prompt,
    readonly status: PromptStatus['status'],
  ) {
    super(`The Prompt ${prompt.id} ${endOf(status, prompt.error_message)}`);
  }
}

/** A Fine-Tune's training ended without weights. */
export class TrainingFailedError extends Error {
  override name = 'TrainingFailedError';

  constructor(readonly finetune: Finetune) {
    super(`The training of ${finetune.id} ${endOf(finetune.status, finetune.error_message)}`);
  }
}

/** The result did not come in time. The service continues to work on it. */
export class WaitTimeoutError extends Error {
  override name = 'WaitTimeoutError';

  constructor(
    /** Undefined if the service had not yet accepted the request. */
    readonly id: string | undefined,
    timeoutMs: number,
  ) {
    super(`${id ?? 'The Generation'} was not finished after ${timeoutMs} ms.`);
  }
}

/** A webhook request is not from the service, was changed on its way, or is older than five minutes. */
export class WebhookVerificationError extends Error {
  override name = 'WebhookVerificationError';
}

function endOf(status: string, reason: string | null | undefined): string {
  const ended = status === 'canceled' ? 'was canceled' : `has ${status}`;
  return reason ? `${ended}: ${reason}` : `${ended}.`;
}
