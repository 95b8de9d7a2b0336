/** A run that its caller gave up, noticed before the next step. */
export class AbortError extends Error {
  override readonly name = 'AbortError';

  constructor() {
    super('The run was aborted.');
  }
}
