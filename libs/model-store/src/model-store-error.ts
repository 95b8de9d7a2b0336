/** What went wrong, for a caller that reacts to it; the message is one sentence for a person. */
type ModelStoreErrorCode =
  | 'InvalidModelName'
  | 'InvalidSource'
  | 'InvalidModel'
  | 'ModelNotInstalled'
  | 'ModelExists'
  | 'ModelLocked'
  | 'HubRefused'
  | 'HubUnreachable'
  | 'CorruptFile'
  | 'NoSpace'
  | 'NotWritable'
  | 'Aborted';

/** Every failure of the model store that a caller can do something about. */
export class ModelStoreError extends Error {
  constructor(
    readonly code: ModelStoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ModelStoreError';
  }
}

/** The `code` of a system error (`ENOENT`, ...), or undefined for any other value. */
export function systemCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}
