/** The storage cannot be reached or refuses its service. Not the fault of what was to be stored. */
export class StorageUnavailableError extends Error {
  override readonly name = 'StorageUnavailableError';

  /** @param isPassing whether another try may go well soon. */
  constructor(
    reason: string,
    readonly isPassing: boolean,
    options?: ErrorOptions,
  ) {
    super(`The storage cannot be used: ${reason}.`, options);
  }
}
