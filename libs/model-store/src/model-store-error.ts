/** What went wrong, for code that reacts to it; the message is one sentence for a person. */
type ModelStoreErrorCode =
  | 'InvalidModelName'
  | 'InvalidSource'
  | 'InvalidDefaults'
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

/** A failure of the model store that its caller can act on. */
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
