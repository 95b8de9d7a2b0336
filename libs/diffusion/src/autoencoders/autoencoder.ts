import { autoencoderKlDecoder, autoencoderKlEncoder } from '../architectures/autoencoder-kl';
import {
  type AutoencoderKlFlux2Config,
  autoencoderKlFlux2Decoder,
  autoencoderKlFlux2Encoder,
} from '../architectures/autoencoder-kl-flux2';
import { autoencoderTinyDecoder, autoencoderTinyEncoder } from '../architectures/autoencoder-tiny';
import { cures, ModelFolderError } from '../errors';
import type { BuiltGraph, ModuleOptions } from '../graph/module';
import type { LoadOptions } from '../sessions/model-session';
import { openPart, type PartFiles } from '../sessions/part-graph';
import type { NamedTensors } from '../weights/named-tensor';
import { VaeDecoder } from './vae-decoder';
import { VaeEncoder } from './vae-encoder';

/** Feature maps of the size of the picture that the decoder has in memory at once, an upper estimate. */
const decodedMaps = 8;
/** Names of the weights of the encoder, which is loaded when it first has to encode a picture. */
const encoderWeights = /^(?:encoder|quant_conv)\./;
/** Half precision cannot hold what XL's decoder computes. */
const exact = { onCuda: 'float32', isAdapted: false } as const;

/** The autoencoder of a model before it is loaded: `AutoencoderKL`, that of FLUX.2, or the tiny one. */
export class AutoencoderFiles implements PartFiles {
  readonly part = 'vae';

  /** @param scaling the `scaling_factor` and `shift_factor` of its configuration: how its latents are scaled */
  constructor(
    readonly tensors: NamedTensors,
    readonly file: string,
    readonly scaling: { factor: number; shift: number },
    readonly config: AutoencoderKlFlux2Config = { normNumGroups: 32, batchNormEps: 1e-4 },
  ) {}

  /** Pixels of the picture's edge for one of the latents'. */
  get scale(): number {
    return scaleOf(this.tensors);
  }

  /** Whether it has what latents of a picture are made with; some exports have a decoder only. */
  get hasEncoder(): boolean {
    return this.tensors.has('encoder.conv_out.weight') || this.tensors.has('encoder.layers.0.weight');
  }

  /** The weights that are loaded with the model, or those of the encoder alone. */
  weightsOf(side: 'encoder' | 'decoder'): NamedTensors {
    return new Map([...this.tensors].filter(([name]) => encoderWeights.test(name) === (side === 'encoder')));
  }

  /** An upper estimate of the bytes that decoding or encoding a picture takes. */
  callBytes({ width, height }: { width: number; height: number }): number {
    const channelsOf = (name: string, axis: number): number | undefined => this.tensors.get(name)?.shape[axis];
    // The level below is enlarged before its channels become fewer.
    const channels = Math.max(
      channelsOf('decoder.conv_out.weight', 1) ?? 128,
      channelsOf('decoder.up_blocks.3.resnets.0.conv1.weight', 1) ?? 0,
    );
    return decodedMaps * channels * width * height * Float32Array.BYTES_PER_ELEMENT;
  }

  decoder = (options: ModuleOptions): BuiltGraph => {
    if (options.tensors.has('decoder.layers.0.weight')) return autoencoderTinyDecoder(options);
    return hasPatches(options.tensors)
      ? autoencoderKlFlux2Decoder(options, this.config)
      : autoencoderKlDecoder(options, this.config);
  };

  encoder = (options: ModuleOptions): BuiltGraph => {
    if (options.tensors.has('encoder.layers.0.weight')) return autoencoderTinyEncoder(options);
    return hasPatches(options.tensors)
      ? autoencoderKlFlux2Encoder(options, this.config)
      : autoencoderKlEncoder(options, this.config);
  };

  async openDecoder(options: LoadOptions): Promise<VaeDecoder> {
    return new VaeDecoder(await openPart(this, this.decoder, options, exact), this.scaling);
  }

  /** @throws ModelFolderError if it has no encoder, as a file of a decoder alone */
  async openEncoder({ changedWeights: _, ...options }: LoadOptions): Promise<VaeEncoder> {
    if (!this.hasEncoder)
      throw new ModelFolderError(this.file, 'has no encoder, without which no picture can be read', cures.ownVae);
    return new VaeEncoder(await openPart(this, this.encoder, options, exact), this.scaling);
  }
}

/** Whether its latents are of 2 x 2 patches, as FLUX.2's are. */
const hasPatches = (tensors: NamedTensors): boolean => tensors.has('bn.running_mean');

/** Pixels of the picture's edge for one of the latents', by an autoencoder's weights. */
export function scaleOf(tensors: NamedTensors): number {
  const levels = [...tensors.keys()].filter((name) =>
    /^decoder\.up_blocks\.\d+\.upsamplers\.0\.conv\.weight$/.test(name),
  );
  return 2 ** (levels.length || 3) * (hasPatches(tensors) ? 2 : 1);
}
