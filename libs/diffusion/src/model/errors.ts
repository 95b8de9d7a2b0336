import type { Cure } from './cures';

/** The device has too little memory for a call: one of fewer rows, or one that has less beside it, may go well. */
export class OutOfMemoryError extends Error {
  override readonly name = 'OutOfMemoryError';
}

/** What is wrong with a file of a model folder. */
export type ModelFault = Pick<ModelFolderError, 'file' | 'reason' | 'cure'>;

/**
 * A model folder that cannot be drawn with. The message names the file and the reason, and says what to do, and so for
 * each further fault in a line of its own.
 */
export class ModelFolderError extends Error {
  override readonly name = 'ModelFolderError';

  /**
   * @param file path of the file or folder at fault
   * @param reason what is wrong with it, as the end of a sentence that begins with the path: `is missing`
   * @param cure the sentence after that one
   * @param others what else is wrong with the same folder
   */
  constructor(
    readonly file: string,
    readonly reason: string,
    readonly cure: Cure,
    readonly others: readonly ModelFault[] = [],
  ) {
    super(
      [{ file, reason, cure }, ...others].map((fault) => `${fault.file} ${fault.reason}. ${fault.cure}`).join('\n'),
    );
  }
}

/** Faults that stand in a line each, for where there is only one. */
export const inOneLine = (faults: string): string => faults.replaceAll('\n', ' ');

/** The requested device has no execution provider here; the same folder may load on the CPU. */
export class ProviderUnavailableError extends Error {
  override readonly name = 'ProviderUnavailableError';

  constructor(
    readonly device: string,
    readonly reason: string,
  ) {
    super(`The device ${device} cannot be used: ${reason}.`);
  }
}
