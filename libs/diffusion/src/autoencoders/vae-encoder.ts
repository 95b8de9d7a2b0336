import type { Generator } from '../random/generator';
import type { GraphSession } from '../sessions/model-session';
import { float32, floatsOf } from '../sessions/tensor';
import { assertFinite, type LatentShape, type RgbImage, toPlanes } from '../tensor/planes';

/**
 * Distribution of a picture's latents, scaled as the denoiser has them: each normal, with its own mean and deviation.
 */
export interface LatentDistribution {
  shape: LatentShape;
  mean: Float32Array;
  /** Absent for the tiny autoencoder, whose latents are certain. */
  deviation?: Float32Array;
}

/** Logarithms of variances are cut to this range. Source: `DiagonalGaussianDistribution` of diffusers. */
const logVariances = { least: -30, most: 20 };

/** The encoder half of the variational autoencoder: turns a picture into latents. It is float32 on all devices. */
export class VaeEncoder {
  /** @param scaling the `scaling_factor` and `shift_factor` of the model's configuration, applied after encoding */
  constructor(
    private readonly session: GraphSession,
    private readonly scaling: { factor: number; shift: number },
  ) {}

  /** Encodes a picture whose edges are multiples of the model's `vaeScaleFactor`. @throws NotFiniteError */
  async encode(image: RgbImage): Promise<LatentDistribution> {
    const planes = toPlanes(image, (byte) => Math.fround(byte / 255) * 2 - 1);
    return this.encodePlanes(planes, image.width, image.height);
  }

  /** The same of values from -1 to 1, [3, height, width]. */
  async encodePlanes(planes: Float32Array, width: number, height: number): Promise<LatentDistribution> {
    const sample = float32(planes, [1, 3, height, width]);
    const results = await this.session.run({ sample });
    const isSure = 'latents' in results;
    const parameters = isSure ? results.latents : results.latent_parameters;
    const values = floatsOf(parameters);
    assertFinite(values, 'VAE encoder');
    const { factor, shift } = this.scaling;
    const [, channels, ...edges] = parameters.dims;
    const count = isSure ? channels : channels / 2;
    const size = count * edges[0] * edges[1];
    const { least, most } = logVariances;
    return {
      shape: [count, edges[0], edges[1]],
      mean: values.subarray(0, size).map((value) => (value - shift) * factor),
      ...(!isSure && {
        deviation: values
          .subarray(size)
          .map((value) => Math.exp(Math.min(most, Math.max(least, value)) / 2) * Math.abs(factor)),
      }),
    };
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

/** Latents of a distribution, with one draw of noise unless it is sure. */
export function sampleLatents({ mean, deviation }: LatentDistribution, generator: Generator): Float32Array {
  if (!deviation) return mean;
  const noise = generator.randn(mean.length);
  return mean.map((value, i) => value + deviation[i] * noise[i]);
}
