import { cures, ModelFolderError } from '../errors';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { type BuildGraph, openPart } from '../sessions/part-graph';
import { float32, floatsOf } from '../sessions/tensor';
import { assertFinite, type LatentShape } from '../tensor/planes';
import type { NamedTensors } from '../weights/named-tensor';
import type { AutoencoderFiles, LatentDecoder, LatentDistribution, LatentEncoder, PicturePlanes } from './autoencoder';

/** In what variational autoencoders differ. */
export interface VaeUse {
  decoder: BuildGraph;
  encoder: BuildGraph;
  /** Pixels of the picture's edge for one of the latents'. */
  scaleFactor: number;
  latentChannels: number | undefined;
  /** Applied to latents of the encoder, and undone before the decoder, where their graphs do not. */
  scaling?: Scaling;
}

/** The `scaling_factor` and `shift_factor` of a configuration. */
export interface Scaling {
  factor: number;
  shift: number;
}

/** Feature maps of the size of the picture that the decoder has in memory at once, an upper estimate. */
const decodedMaps = 8;
const encoderWeights = /^(?:encoder|quant_conv)\./;
/** Half precision cannot hold what XL's decoder computes. */
const exact = { onCuda: 'float32', isAdapted: false } as const;
/** Logarithms of variances are cut to this range. Source: `DiagonalGaussianDistribution` of diffusers. */
const logVariances = { least: -30, most: 20 };
const unscaled: Scaling = { factor: 1, shift: 0 };

/** The variational autoencoder of a model before it is loaded. */
export class VaeFiles implements AutoencoderFiles {
  readonly part = 'vae';

  constructor(
    readonly tensors: NamedTensors,
    readonly file: string,
    readonly use: VaeUse,
  ) {}

  get graphs(): readonly BuildGraph[] {
    return [this.use.decoder, ...(this.hasEncoder ? [this.use.encoder] : [])];
  }

  get scaleFactor(): number {
    return this.use.scaleFactor;
  }

  get latentChannels(): number | undefined {
    return this.use.latentChannels;
  }

  get hasEncoder(): boolean {
    return this.tensors.has('encoder.conv_out.weight') || this.tensors.has('encoder.layers.0.weight');
  }

  weightsOf(side: 'encoder' | 'decoder'): NamedTensors {
    return new Map([...this.tensors].filter(([name]) => encoderWeights.test(name) === (side === 'encoder')));
  }

  callBytes({ width, height }: { width: number; height: number }): number {
    const channelsOf = (name: string, axis: number): number | undefined => this.tensors.get(name)?.shape[axis];
    // The level below is enlarged before its channels become fewer.
    const channels = Math.max(
      channelsOf('decoder.conv_out.weight', 1) ?? 128,
      channelsOf('decoder.up_blocks.3.resnets.0.conv1.weight', 1) ?? 0,
    );
    return decodedMaps * channels * width * height * Float32Array.BYTES_PER_ELEMENT;
  }

  async openDecoder(options: LoadOptions): Promise<LatentDecoder> {
    return new VaeDecoder(await openPart(this, this.use.decoder, options, exact), this.use.scaling);
  }

  async openEncoder({ changedWeights: _, ...options }: LoadOptions): Promise<LatentEncoder> {
    if (!this.hasEncoder)
      throw new ModelFolderError(this.file, 'has no encoder, without which no picture can be read', cures.ownVae);
    return new VaeEncoder(await openPart(this, this.use.encoder, options, exact), this.use.scaling);
  }
}

class VaeDecoder implements LatentDecoder {
  constructor(
    private readonly session: GraphSession,
    private readonly scaling = unscaled,
  ) {}

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  get latentChannels(): number {
    return Number(this.session.inputs[0].shape[1]);
  }

  async decode(latents: Float32Array, shape: LatentShape): Promise<PicturePlanes> {
    const { factor, shift } = this.scaling;
    const values = latents.map((value) => value / factor + shift);
    const { sample } = await this.session.run({ latent_sample: float32(values, [1, ...shape]) });
    const [, channels, height, width] = sample.dims;
    if (channels !== 3)
      throw new ModelFolderError(this.session.file, `gives ${channels} channels in place of 3`, cures.otherModel);
    return { planes: floatsOf(sample), width, height };
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

/** It is float32 on all devices. */
class VaeEncoder implements LatentEncoder {
  constructor(
    private readonly session: GraphSession,
    private readonly scaling = unscaled,
  ) {}

  async encode({ planes, width, height }: PicturePlanes): Promise<LatentDistribution> {
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

  unscaled(latents: Float32Array): Float32Array {
    return latents.map((value) => value / this.scaling.factor);
  }

  release(): Promise<void> {
    return this.session.release();
  }
}
