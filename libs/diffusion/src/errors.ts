/**
 * Cures for a model that is refused, a sentence each: the last one of every refusal. docs/models.md explains
 * them, and a test finds one that it lacks.
 */
export const cures = {
  /** Files are missing, damaged or cut short. */
  installAgain: 'Install it again, from a whole copy.',
  /** Git LFS keeps the file elsewhere. */
  getFile: 'Get the file itself, with "git lfs pull" for example.',
  allowReading: 'Let the user that the service runs as read it.',
  /** A JSON file is damaged or has a wrong value. */
  correct: 'Correct this file, or take it from the source of the model again.',
  /** The same of a file that is optional. */
  correctOrRemove: 'Correct this file, or remove it: it is optional.',
  /** Two files do not belong together. */
  oneModel: 'Take all files from one copy of one model.',
  /** A checkpoint that has some of a model's parts. */
  wholeModel: 'Take a checkpoint or a folder that has all parts; an autoencoder of its own is given with "--vae".',
  /** A file that is given as that of a part, and is of something else. */
  partFile: 'Give the file of a part of FLUX.2 [klein] or Z-Image, as docs/models.md lists them.',
  /** A file that is given as an autoencoder, and is none. */
  ownVae: 'Give "--vae" the .safetensors file of an autoencoder of the same family.',
  /** A file that runs code when it is read. */
  safetensors: 'Take the .safetensors file of the same model.',
  /** A graph whose weights are quantised, fused or have lost their names. */
  plainWeights: 'Install the safetensors that it was made from.',
  /** A file in a form of few bits that only some programs or devices have. */
  knownForm: 'Take its file in bfloat16, fp8, int8 or GGUF (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K) instead.',
  /** A LoRA or a textual inversion. */
  toFinetune: 'Send it to a Fine-Tune, with PUT /v1/finetunes/<id>/weights.',
  /** A ControlNet, which is asked for as such. */
  asControl: 'Install it with "--kind control".',
  /** A model, where a ControlNet or a safety checker was asked for. */
  asModel: 'Install it without "--kind".',
  /** A safety checker, which is asked for as such. */
  asSafety: 'Install it with "--kind safety".',
  /** It is called a safety checker, and nothing here knows its kind. */
  otherSafety: 'Take the folder safety_checker of Stable Diffusion 1.x.',
  /** It draws in a way that nothing here knows. */
  otherModel:
    'Install a model that draws from text, of Stable Diffusion 1.x, 2.x or XL, FLUX.2 [klein], Z-Image or ERNIE-Image.',
  /** It is called a ControlNet, and nothing here knows its kind. */
  otherControl: 'Install a ControlNet of Stable Diffusion 1.x, 2.x or XL.',
  /** Weights are damaged, or too large for float16. */
  otherWeights: 'Install a whole copy of it, or one in float32.',
  /** A folder holds far more than a model. */
  removeOthers: 'Take out of it what does not belong to the model.',
  /** Several models, or several graphs of a part. */
  nameOne: 'Name the one that is meant.',
} as const;

/** A `config.json` says something that the graphs here do not know; the message is one plain sentence. */
export class UnsupportedConfigError extends Error {
  override readonly name = 'UnsupportedConfigError';
}

/** One of {@link cures}. */
export type Cure = (typeof cures)[keyof typeof cures];

/** The device has too little memory for a call: one of fewer rows, or one that has less beside it, may go well. */
export class OutOfMemoryError extends Error {
  override readonly name = 'OutOfMemoryError';
}

type ModelFault = Pick<ModelFolderError, 'file' | 'reason' | 'cure'>;

/**
 * A model folder that cannot be drawn with. The message names the file and the reason, and says what to do; each
 * further fault has a line of its own.
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

/**
 * Results of some steps, none of which needs another's.
 * @throws ModelFolderError with the faults of all that are refused; any other error at once
 */
export async function resultsOf<T extends object>(steps: { [K in keyof T]: () => T[K] | Promise<T[K]> }): Promise<T> {
  const results: Partial<T> = {};
  const faults: ModelFault[] = [];
  for (const name of Object.keys(steps) as (keyof T)[])
    try {
      results[name] = await steps[name]();
    } catch (error) {
      if (!(error instanceof ModelFolderError)) throw error;
      faults.push(error, ...error.others);
    }
  if (faults.length > 0) throw allOf(faults);
  return results as T;
}

/** One error that tells all of some faults, of which there is at least one. */
export function allOf([first, ...others]: readonly ModelFault[]): ModelFolderError {
  return new ModelFolderError(first.file, first.reason, first.cure, others);
}

/** A run that its caller gave up, noticed before the next step. */
export class AbortError extends Error {
  override readonly name = 'AbortError';

  constructor() {
    super('The run was aborted.');
  }
}

/** A request that cannot be drawn. The message is one sentence that names the value and what is accepted. */
export class RequestError extends RangeError {
  override readonly name = 'RequestError';
}
