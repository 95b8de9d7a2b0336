/** Why weights are rejected: malformed, for another model, of a kind that is not known, or too expensive to merge. */
export type WeightsErrorCode =
  'WeightsMalformed' | 'WeightsDoNotFitModel' | 'WeightsKindUnsupported' | 'WeightsTooComplex';

/** Uploaded weights that cannot be used; the message is a sentence that names the key and, where it matters, shapes. */
export class WeightsError extends Error {
  override name = 'WeightsError';

  constructor(
    readonly code: WeightsErrorCode,
    message: string,
  ) {
    super(message);
  }
}

const errorOf =
  (code: WeightsErrorCode) =>
  (sentence: string): WeightsError =>
    new WeightsError(code, sentence);

export const malformed = errorOf('WeightsMalformed');
export const misfit = errorOf('WeightsDoNotFitModel');
export const unsupported = errorOf('WeightsKindUnsupported');
export const tooComplex = errorOf('WeightsTooComplex');

/** Writes a shape: `[320, 8]`. */
export const shapeText = (shape: readonly number[]): string => `[${shape.join(', ')}]`;
