/** A failure that another try may mend. */
export class TransientError extends Error {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The most telling part of a network failure: `ECONNREFUSED`, `ENOTFOUND`, or what the error says. */
export function networkReason(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? String(error);
}
