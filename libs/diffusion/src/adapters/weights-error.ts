/**
 * Why weights are rejected: malformed, made for another model, of a kind that cannot be merged, or
 * too expensive to merge.
 */
export type WeightsErrorCode =
  'WeightsMalformed' | 'WeightsDoNotFitModel' | 'WeightsKindUnsupported' | 'WeightsTooComplex';

/**
 * Uploaded weights that cannot be used; the message is one sentence that names the key and, where
 * it matters, the shapes.
 */
export class WeightsError extends Error {
  override name = 'WeightsError';

  constructor(
    readonly code: WeightsErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** Quotes a name from an uploaded file: escaped and never longer than a line. */
export function quote(name: string): string {
  const text = JSON.stringify(name);
  return text.length > 160 ? `${text.slice(0, 160)}…"` : text;
}

/** Writes a shape: `[320, 8]`. */
export function shapeText(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`;
}

export function malformed(sentence: string): WeightsError {
  return new WeightsError('WeightsMalformed', sentence);
}

export function misfit(sentence: string): WeightsError {
  return new WeightsError('WeightsDoNotFitModel', sentence);
}

export function unsupported(sentence: string): WeightsError {
  return new WeightsError('WeightsKindUnsupported', sentence);
}
