/** A model folder that cannot be drawn with. The message is one sentence that names the file and the reason. */
export class ModelFolderError extends Error {
  override readonly name = 'ModelFolderError';

  /**
   * @param file path of the file or folder at fault
   * @param reason what is wrong with it, as the rest of a sentence that begins with the path: `is missing`
   */
  constructor(
    readonly file: string,
    readonly reason: string,
  ) {
    super(`${file} ${reason}.`);
  }
}

/** The device that was asked for has no execution provider here; the same folder may load on the CPU. */
export class ProviderUnavailableError extends Error {
  override readonly name = 'ProviderUnavailableError';

  constructor(
    readonly device: string,
    readonly reason: string,
  ) {
    super(`The device ${device} cannot be used: ${reason}.`);
  }
}

/** A run that its caller gave up, noticed before the next step. */
export class AbortError extends Error {
  override readonly name = 'AbortError';

  constructor() {
    super('The run was aborted.');
  }
}

/** The arithmetic of a model ran over, as that of half precision does most easily: what it gave is no picture. */
export class NotFiniteError extends Error {
  override readonly name = 'NotFiniteError';

  /** @param part which gave them: `U-Net` or `VAE decoder` */
  constructor(part: string) {
    super(
      `The model gave numbers that are not finite (from its ${part}), which are no picture: another cfg or scheduler, or the model in a higher precision, may help.`,
    );
  }
}

/** One pass: a sum of float32 values is finite in double precision exactly if all of them are. @throws NotFiniteError */
export function assertFinite(values: Float32Array, part: string): void {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  if (!Number.isFinite(sum)) throw new NotFiniteError(part);
}
