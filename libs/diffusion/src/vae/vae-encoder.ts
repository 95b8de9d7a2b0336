import { Tensor } from 'onnxruntime-node';
import { autoencoderKlEncoder } from '../architectures/autoencoder-kl';
import { cures, ModelFolderError } from '../errors';
import type { ModelFolder } from '../families/model-folder';
import { type GraphSession, type LoadOptions, ModelSession } from '../sessions/model-session';
import { placeGraph } from '../sessions/placed-graph';
import { assertFinite, type LatentShape, type RgbImage } from '../tensor/planes';

/** What a picture's latents are distributed as, scaled as the U-Net has them: each normal, with its own mean and deviation. */
export interface LatentDistribution {
  shape: LatentShape;
  mean: Float32Array;
  deviation: Float32Array;
}

/** Logarithms of variances are cut to this range. Source: `DiagonalGaussianDistribution` of diffusers. */
const logVariances = { least: -30, most: 20 };

/** The encoder half of the variational autoencoder: turns a picture into latents. */
export class VaeEncoder {
  private constructor(
    private readonly session: GraphSession,
    private readonly scaling: ModelFolder['scaling'],
  ) {}

  /** @param scaling the `scaling_factor` and `shift_factor` of the model's configuration, applied after encoding */
  static open(session: GraphSession, scaling: ModelFolder['scaling']): VaeEncoder {
    return new VaeEncoder(session, scaling);
  }

  /** Loads the encoder of a model. @throws ModelFolderError if it has none, as a file of a decoder alone */
  static async load(folder: ModelFolder, options: LoadOptions): Promise<VaeEncoder> {
    const [tensors, file] = [folder.tensors.get('vae')!, folder.files.get('vae')!];
    if (!tensors.has('encoder.conv_in.weight') || !tensors.has('encoder.conv_out.weight'))
      throw new ModelFolderError(file, 'has no encoder, without which no picture can be read', cures.ownVae);
    const { graph } = autoencoderKlEncoder({ tensors }, folder.vae);
    return VaeEncoder.open(await ModelSession.open(placeGraph(graph, file), options), folder.scaling);
  }

  /** Encodes a picture whose edges are multiples of the model's `vaeScaleFactor`. @throws NotFiniteError */
  async encode({ data, width, height }: RgbImage): Promise<LatentDistribution> {
    const size = width * height;
    const planes = new Float32Array(3 * size);
    for (let i = 0; i < size; i++)
      for (let channel = 0; channel < 3; channel++) planes[channel * size + i] = data[3 * i + channel] / 127.5 - 1;
    const sample = new Tensor('float32', planes, [1, 3, height, width]);
    const { latent_parameters: parameters } = await this.session.run({ sample });
    const values = parameters.data as Float32Array;
    assertFinite(values, 'VAE encoder');
    const { factor, shift } = this.scaling;
    const half = values.length / 2;
    const { least, most } = logVariances;
    return {
      shape: [parameters.dims[1] / 2, parameters.dims[2], parameters.dims[3]],
      mean: values.subarray(0, half).map((value) => (value - shift) * factor),
      deviation: values
        .subarray(half)
        .map((value) => Math.exp(Math.min(most, Math.max(least, value)) / 2) * Math.abs(factor)),
    };
  }

  release(): Promise<void> {
    return this.session.release();
  }
}
