/** A failure that a retry may overcome. */
export class TransientError extends Error {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The most specific part of a network failure: `ECONNREFUSED`, `ENOTFOUND`, or the error's message. */
export function networkReason(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? String(error);
}
