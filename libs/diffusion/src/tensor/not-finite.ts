/** A model's arithmetic overflowed, which is most likely in half precision: its output is not a picture. */
export class NotFiniteError extends Error {
  override readonly name = 'NotFiniteError';

  /** @param part whose output it is: `U-Net` or `VAE decoder` */
  constructor(part: string) {
    super(
      `The model gave numbers that are not finite (from its ${part}), which are no picture: another cfg or scheduler, or the model in a higher precision, may help.`,
    );
  }
}

/** What is wrong with a part of a model, as the end of a sentence. */
export const notFinite = 'gives numbers that are not finite, which are no picture: its weights are damaged or overflow';

/** One pass: a sum of float32 values is finite in double precision exactly if all of them are. */
export function areFinite(values: Float32Array): boolean {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return Number.isFinite(sum);
}

/** @throws NotFiniteError */
export function assertFinite(values: Float32Array, part: string): void {
  if (!areFinite(values)) throw new NotFiniteError(part);
}
