/** Channels, height and width of one image's latents. */
export type LatentShape = readonly [channels: number, height: number, width: number];

/** A picture: row-major, three bytes (red, green, blue) per pixel. */
export interface RgbImage {
  width: number;
  height: number;
  data: Uint8Array;
}

/**
 * Interleaves planes [3, height, width] into a picture.
 * @param toByte maps a plane's value to 0..255; the result is rounded and clamped
 */
export function fromPlanes(
  planes: Float32Array,
  width: number,
  height: number,
  toByte: (value: number) => number,
): RgbImage {
  const size = width * height;
  const data = new Uint8ClampedArray(size * 3);
  for (let channel = 0; channel < 3; channel++) {
    const plane = channel * size;
    for (let i = 0; i < size; i++) data[i * 3 + channel] = toByte(planes[plane + i]);
  }
  return { width, height, data: new Uint8Array(data.buffer) };
}

/** The planes [3, height, width] of a picture. @param toValue maps a byte, 0..255, to a plane's value */
export function toPlanes({ data, width, height }: RgbImage, toValue: (byte: number) => number): Float32Array {
  const size = width * height;
  const values = Float32Array.from({ length: 256 }, (_, byte) => toValue(byte));
  const planes = new Float32Array(size * 3);
  for (let channel = 0; channel < 3; channel++)
    for (let i = 0; i < size; i++) planes[channel * size + i] = values[data[i * 3 + channel]];
  return planes;
}

/** A model's arithmetic overflowed, which is most likely in half precision: its output is not a picture. */
export class NotFiniteError extends Error {
  override readonly name = 'NotFiniteError';

  /** @param part whose output it is: the title of a denoiser, `VAE decoder` or `VAE encoder` */
  constructor(part: string) {
    super(
      `The model gave numbers that are not finite (from its ${part}), which are no picture: another cfg or scheduler, or the model in a higher precision, may help.`,
    );
  }
}

/** Fault of a part of a model, as the end of a sentence. */
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
