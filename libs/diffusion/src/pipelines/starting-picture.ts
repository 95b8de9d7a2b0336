/**
 * The picture that a request starts from. Source: `prepare_latents` and `prepare_mask_latents` of diffusers'
 * StableDiffusionImg2ImgPipeline, StableDiffusionInpaintPipeline, StableDiffusionInstructPix2PixPipeline and those of
 * XL, ZImageInpaintPipeline and Flux2KleinInpaintPipeline. The order of the generator's draws is theirs.
 */
import { RequestError } from '../errors';
import type { DenoiserFiles, ModelKind, Reference } from '../denoisers/denoiser';
import { drawnSteps } from '../schedulers/timesteps';
import type { Generator } from '../random/generator';
import type { Scheduler } from '../schedulers/scheduler';
import type { LatentShape, RgbImage } from '../tensor/planes';
import { type LatentDistribution, type LatentEncoder, planesOf, sampleLatents } from '../autoencoders/autoencoder';
import type { Mask, TextToImageRequest } from './text-to-image-request';

/** From this value on a pixel of a mask is repainted. */
const repainted = 128;

const defaultStrength = 0.8;

/** A picture to start from, encoded: what the pictures of a request have in common. */
export interface StartingPicture {
  /** For a model that changes pictures its latents are not scaled. */
  image: LatentDistribution;
  /** For a model of kind `inpainting`: the picture with grey in place of what is repainted. */
  masked?: LatentDistribution;
  /** [height, width] of the latents: how far each is repainted, from 0 to 1. */
  mask?: Float32Array;
}

/** The part of a picture that stays as it was given, in latents. */
export interface KeptLatents {
  image: Float32Array;
  noise: Float32Array;
  /** [height, width]: how far each is repainted, from 0 to 1. */
  mask: Float32Array;
}

/** The start of one picture. */
export interface Beginning {
  latents: Float32Array;
  /** For each row of the picture: channels behind the latents'. */
  furtherChannels?: readonly Float32Array[];
  kept?: KeptLatents;
}

/**
 * Steps that a request leaves out: those before the share that its strength draws, which diffusers rounds down, and of
 * flow matching up.
 */
export function skippedSteps(
  { image, numInferenceSteps: steps, strength = defaultStrength }: TextToImageRequest,
  isOfFlow: boolean,
): number {
  return image ? steps - drawnSteps(steps, strength, isOfFlow) : 0;
}

/** Encodes what a request starts from. @param scaleFactor pixels of the picture's edge for one of the latents' edge */
export async function encodeStart(
  image: RgbImage,
  mask: Mask | undefined,
  { kind, takesReferences = false }: Pick<DenoiserFiles, 'kind' | 'takesReferences'>,
  encoder: LatentEncoder,
  scaleFactor: number,
): Promise<StartingPicture> {
  const picture = planesOf(image);
  const encoded = await encoder.encode(picture);
  if (kind === 'instruct-pix2pix') return { image: { ...encoded, mean: encoder.unscaled(encoded.mean) } };
  if (!mask) return { image: encoded };
  const { shape } = encoded;
  const ofLatents = maskOfLatents(mask, shape, scaleFactor, takesReferences ? centreOf : firstOf);
  const found: StartingPicture = { image: encoded, mask: ofLatents };
  if (kind !== 'inpainting') return found;
  const size = image.width * image.height;
  const planes = picture.planes.map((value, i) => (mask.values[i % size] < repainted ? value : 0));
  return { ...found, masked: await encoder.encode({ ...picture, planes }) };
}

/**
 * Encodes what a model looks at: each picture in its own shape, one after the other, once for all pictures of a
 * request.
 * Source: `prepare_image_latents` of diffusers' Flux2KleinPipeline.
 */
export async function encodeReferences(
  pictures: readonly RgbImage[],
  openEncoder: () => Promise<LatentEncoder>,
): Promise<Reference[]> {
  const references: Reference[] = [];
  for (const picture of pictures) {
    const { mean: latents, shape } = await (await openEncoder()).encode(planesOf(picture));
    references.push({ latents, shape });
  }
  return references;
}

/** Offsets of the pixels that tell the mask of a position, along an edge of so many. */
const firstOf = (): number[] => [0];
/** Source: `prepare_mask_latents` of diffusers' Flux2KleinInpaintPipeline. */
const centreOf = (scaleFactor: number): number[] => [scaleFactor / 2 - 1, scaleFactor / 2];
const allOf = (scaleFactor: number): number[] => Array.from({ length: scaleFactor }, (_, i) => i);

/**
 * The mask at the positions of the latents: the mean of some pixels of each.
 * @throws RequestError where none of these is repainted
 */
function maskOfLatents(
  { values, width, byAnyPixel = false }: Mask,
  [, rows, columns]: LatentShape,
  scaleFactor: number,
  pixelsOf: (scaleFactor: number) => number[],
): Float32Array {
  const offsets = (byAnyPixel ? allOf : pixelsOf)(scaleFactor);
  const at = (i: number): number => (Math.floor(i / columns) * width + (i % columns)) * scaleFactor;
  const all = offsets.flatMap((y) => offsets.map((x) => y * width + x));
  const mask = Float32Array.from({ length: rows * columns }, (_, i) => {
    const share = all.filter((offset) => values[at(i) + offset] >= repainted).length / all.length;
    return byAnyPixel ? Math.ceil(share) : share;
  });
  if (mask.some((value) => value > 0)) return mask;
  throw new RequestError(
    `The mask marks nothing that this model repaints: it sees ${all.length === 1 ? 'one pixel' : `${all.length} pixels`} of each ${scaleFactor} x ${scaleFactor}; mark a larger part.`,
  );
}

/**
 * The start of a picture.
 * @param latents how many there are, and of which kind of model
 * @param scheduler its steps are set; those before the request's strength are left out here
 */
export function beginningOf(
  request: TextToImageRequest,
  { kind, size, isOfFlow }: { kind: ModelKind; size: number; isOfFlow: boolean },
  start: StartingPicture | undefined,
  scheduler: Scheduler,
  generator: Generator,
): Beginning {
  const fromNoise = (noise: Float32Array) => noise.map((value) => value * scheduler.initNoiseSigma);
  if (!start) return { latents: fromNoise(generator.randn(size)) };
  if (kind === 'instruct-pix2pix') {
    const image = start.image.mean;
    // Rows of the prompt, of the picture without it, and of neither.
    const furtherChannels = [image, image, new Float32Array(size)];
    return { latents: fromNoise(generator.randn(size)), furtherChannels };
  }
  const isWhole = start.mask !== undefined && request.strength === 1;
  const isInpainting = kind === 'inpainting';
  const image = isInpainting && isWhole ? undefined : sampleLatents(start.image, generator);
  const noise = generator.randn(size);
  scheduler.beginAt(skippedSteps(request, isOfFlow));
  const latents = isWhole ? fromNoise(noise) : scheduler.addNoise(image!, noise);
  if (!start.mask) return { latents };
  // diffusers encodes what the mask leaves in any case, and draws noise for it.
  const masked = sampleLatents(start.masked ?? start.image, generator);
  if (!isInpainting) return { latents, kept: { image: image!, noise, mask: start.mask } };
  const further = joined(start.mask, masked);
  return { latents, furtherChannels: [further, further] };
}

/** Channels of one, and behind them those of the other. */
export function joined(one: Float32Array, other: Float32Array): Float32Array {
  const both = new Float32Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/** Puts what is kept back into latents, with as much noise as the next step expects, or none after the last one. */
export function keep(
  { image, noise, mask }: KeptLatents,
  latents: Float32Array,
  scheduler: Scheduler | undefined,
): Float32Array {
  const original = scheduler ? scheduler.addNoise(image, noise) : image;
  return latents.map((value, i) => {
    const share = mask[i % mask.length];
    return share === 1 ? value : share === 0 ? original[i] : (1 - share) * original[i] + share * value;
  });
}

/** A decoded picture with what is kept in place of its own pixels; a grey of the mask mixes both. */
export function overlaid(image: RgbImage, original: RgbImage, { values }: Mask): RgbImage {
  const data = image.data.map((byte, i) => {
    const share = values[Math.floor(i / 3)] / 255;
    return Math.round(original.data[i] + (byte - original.data[i]) * share);
  });
  return { ...image, data };
}
