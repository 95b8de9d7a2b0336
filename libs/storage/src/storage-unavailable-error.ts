/** The storage cannot be reached or rejects requests. The data to be stored is not at fault. */
export class StorageUnavailableError extends Error {
  override readonly name = 'StorageUnavailableError';

  /** @param isPassing whether a retry may succeed soon. */
  constructor(
    reason: string,
    readonly isPassing: boolean,
    options?: ErrorOptions,
  ) {
    super(`The storage cannot be used: ${reason}.`, options);
  }
}
