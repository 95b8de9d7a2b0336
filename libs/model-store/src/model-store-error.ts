import { sep } from 'node:path';
import { ModelFolderError } from '@app/diffusion/files';

/** What went wrong, for code that reacts to it; the message is for a person: one line, or one for each fault of a model. */
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

/**
 * What `work` returns.
 * @throws ModelStoreError `InvalidModel`, with paths inside the folder, for what the diffusion library refuses
 */
export async function explainRefusal<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ModelFolderError)) throw error;
    throw new ModelStoreError('InvalidModel', error.message.replaceAll(`${folder}${sep}`, ''), { cause: error });
  }
}

/** A fault behind the words that introduce it; several below them, a line each. */
export function withFaults(introduction: string, faults: string): string {
  return faults.includes('\n') ? `${introduction}\n  ${faults.replaceAll('\n', '\n  ')}` : `${introduction} ${faults}`;
}

/** The `code` of a system error (`ENOENT`, ...), or undefined for any other value. */
export function systemCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}
