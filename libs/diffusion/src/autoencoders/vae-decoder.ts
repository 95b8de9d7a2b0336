import { cures, ModelFolderError } from '../errors';
import type { GraphSession } from '../sessions/model-session';
import { float32, floatsOf } from '../sessions/tensor';
import { assertFinite, fromPlanes, type LatentShape, type RgbImage } from '../tensor/planes';

/** The decoder half of the variational autoencoder: turns one image's latents into a picture. */
export class VaeDecoder {
  /** @param scaling the `scaling_factor` and `shift_factor` of the model's configuration, undone before decoding */
  constructor(
    private readonly session: GraphSession,
    private readonly scaling: { factor: number; shift: number },
  ) {}

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  get latentChannels(): number {
    return Number(this.session.inputs[0].shape[1]);
  }

  /** Decodes latents [channels, height, width] to values in [-1, 1], [3, height, width] at the picture's size. */
  async decodePlanes(latents: Float32Array, shape: LatentShape) {
    const { factor, shift } = this.scaling;
    const unscaled = latents.map((value) => value / factor + shift);
    const { sample } = await this.session.run({ latent_sample: float32(unscaled, [1, ...shape]) });
    const [, channels, height, width] = sample.dims;
    if (channels !== 3)
      throw new ModelFolderError(this.session.file, `gives ${channels} channels in place of 3`, cures.otherModel);
    return { planes: floatsOf(sample), width, height };
  }

  /** Decodes latents [channels, height, width] to a picture. @throws NotFiniteError */
  async decode(latents: Float32Array, shape: LatentShape): Promise<RgbImage> {
    const { planes, width, height } = await this.decodePlanes(latents, shape);
    assertFinite(planes, 'VAE decoder');
    return fromPlanes(planes, width, height, (value) => (value / 2 + 0.5) * 255);
  }

  release(): Promise<void> {
    return this.session.release();
  }
}
