import { cures, ModelFolderError } from '../errors';
import type { GraphSession } from '../model/model-session';
import { InputBuffer, toFloat32 } from '../tensor/input-buffer';
import { assertFinite, fromPlanes, type LatentShape, type RgbImage } from '../tensor/planes';
import { decoderValues } from '../model/graph-values';

/** The decoder half of the variational autoencoder: turns one image's latents into a picture. */
export class VaeDecoder {
  readonly values: ReturnType<typeof decoderValues>;

  /**
   * @param scaling the `scaling_factor` and `shift_factor` of the model's configuration, undone before decoding
   * @throws ModelFolderError if the graph is not a VAE decoder
   */
  constructor(
    private readonly session: GraphSession,
    private readonly scaling: { factor: number; shift: number },
  ) {
    this.values = decoderValues(session);
  }

  /** This decoder with its graph loaded elsewhere. */
  over(session: GraphSession): VaeDecoder {
    return new VaeDecoder(session, this.scaling);
  }

  /** Decodes latents [channels, height, width] to values in [-1, 1], [3, height, width] at the picture's size. */
  async decodePlanes(latents: Float32Array, shape: LatentShape) {
    const { factor, shift } = this.scaling;
    const { latents: taken, inputType, output: wanted } = this.values;
    // A graph with a fixed number of rows gets zeros for the others.
    const [fixed] = taken.shape;
    const input = new InputBuffer(inputType, [typeof fixed === 'number' && fixed > 0 ? fixed : 1, ...shape]);
    for (let i = 0; i < latents.length; i++) input.values[i] = latents[i] / factor + shift;
    const output = await this.session.run({ [taken.name]: input.commit() }, wanted.name);
    const [, channels, height, width] = output.dims;
    if (channels !== 3)
      throw new ModelFolderError(this.session.file, `gives ${channels} channels in place of 3`, cures.otherModel);
    return { planes: toFloat32(output).subarray(0, channels * height * width), width, height };
  }

  /** Decodes latents [channels, height, width] to a picture. @throws NotFiniteError */
  async decode(latents: Float32Array, shape: LatentShape): Promise<RgbImage> {
    const { planes, width, height } = await this.decodePlanes(latents, shape);
    assertFinite(planes, 'VAE decoder');
    return fromPlanes(planes, width, height, (value) => (value / 2 + 0.5) * 255);
  }
}
