import type { Generator } from '../random/generator';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import type { PartFiles } from '../sessions/part-graph';
import { assertFinite, fromPlanes, type LatentShape, type RgbImage, toPlanes } from '../tensor/planes';
import type { NamedTensors } from '../weights/named-tensor';

/** A picture as values from -1 to 1. */
export interface PicturePlanes {
  /** [3, height, width] */
  planes: Float32Array;
  width: number;
  height: number;
}

/**
 * Distribution of a picture's latents, scaled as the denoiser has them: each normal, with its own mean and deviation.
 */
export interface LatentDistribution {
  shape: LatentShape;
  mean: Float32Array;
  /** Absent for autoencoders whose latents are certain. */
  deviation?: Float32Array;
}

/** What turns latents into a picture; loaded. */
export interface LatentDecoder extends Pick<GraphSession, 'spent' | 'release'> {
  readonly latentChannels: number;
  /** @param latents [channels, height, width], scaled as the denoiser has them */
  decode(latents: Float32Array, shape: LatentShape): Promise<PicturePlanes>;
}

/** What turns a picture into latents; loaded. */
export interface LatentEncoder extends Pick<GraphSession, 'release'> {
  /** @throws NotFiniteError */
  encode(picture: PicturePlanes): Promise<LatentDistribution>;
  /** Latents without their scaling, as models that change pictures are told them. */
  unscaled(latents: Float32Array): Float32Array;
}

/** An autoencoder before it is loaded: what its files tell. */
export interface AutoencoderFiles extends PartFiles {
  /** Pixels of the picture's edge for one of the latents'. */
  readonly scaleFactor: number;
  /** Of its latents, as the denoiser has them; undefined where no weight tells. */
  readonly latentChannels?: number | undefined;
  /** Whether it has what latents of a picture are made with; some exports have a decoder only. */
  readonly hasEncoder: boolean;
  /** The weights that are loaded with the model, or those of the encoder alone. */
  weightsOf(side: 'encoder' | 'decoder'): NamedTensors;
  /** An upper estimate of the bytes that decoding or encoding a picture takes. */
  callBytes(size: { width: number; height: number }): number;
  openDecoder(options: LoadOptions): Promise<LatentDecoder>;
  /** It is loaded when it first has to encode a picture. @throws ModelFolderError if there is none */
  openEncoder(options: LoadOptions): Promise<LatentEncoder>;
}

/** The picture of decoded values. @throws NotFiniteError */
export function pictureOf({ planes, width, height }: PicturePlanes): RgbImage {
  assertFinite(planes, 'VAE decoder');
  return fromPlanes(planes, width, height, (value) => (value / 2 + 0.5) * 255);
}

/** A picture as an encoder takes it. */
export const planesOf = (image: RgbImage): PicturePlanes => ({
  ...{ width: image.width, height: image.height },
  planes: toPlanes(image, (byte) => Math.fround(byte / 255) * 2 - 1),
});

/** Latents of a distribution, with one draw of noise unless it is sure. */
export function sampleLatents({ mean, deviation }: LatentDistribution, generator: Generator): Float32Array {
  if (!deviation) return mean;
  const noise = generator.randn(mean.length);
  return mean.map((value, i) => value + deviation[i] * noise[i]);
}
