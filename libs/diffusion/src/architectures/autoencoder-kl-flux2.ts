/**
 * diffusers' `models/autoencoders/autoencoder_kl_flux2.py`, and what `Flux2KleinPipeline` does around it: latents of
 * 2 x 2 pixels are one, and their channels are normalised by the statistics of a batch norm.
 */
import type { Value } from '../graph/graph';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { type AutoencoderKlConfig, autoencoderKlConfigOf, decoded, encodedSample } from './autoencoder-kl';
import { assertKnown, type ConfigJson, epsilons, numberOf } from './config';
import { WeightsFileError } from '../weights/named-tensor';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface AutoencoderKlFlux2Config extends AutoencoderKlConfig {
  batchNormEps: number;
}

/** The values of an autoencoder's `config.json`. @throws UnsupportedConfigError */
export function autoencoderKlFlux2ConfigOf(json: ConfigJson): AutoencoderKlFlux2Config {
  assertKnown(json, { patch_size: [2] });
  return { ...autoencoderKlConfigOf(json), batchNormEps: numberOf(json, 'batch_norm_eps', 1e-4, epsilons) };
}

/** `latent_sample` [batch, channels, height, width], as the denoiser has it, to `sample`, from -1 to 1. */
export function autoencoderKlFlux2Decoder(options: ModuleOptions, config: AutoencoderKlFlux2Config): BuiltGraph {
  const m = Module.of(options);
  const { channels, mean, deviation } = statistics(m, config);
  const latents = m.input('latent_sample', ['batch', channels, 'height', 'width']);
  const patches = m.add(m.mul(latents, deviation), mean);
  const pixels = m.op('DepthToSpace', [patches], { blocksize: 2, mode: 'CRD' });
  m.output('sample', decoded(m, pixels, config), ['batch', m.shape('decoder.conv_out.weight')[0], 'rows', 'columns']);
  return m.finish();
}

/** `sample` [batch, 3, height, width] from -1 to 1 to `latents`: the most likely ones, as the denoiser has them. */
export function autoencoderKlFlux2Encoder(options: ModuleOptions, config: AutoencoderKlFlux2Config): BuiltGraph {
  const m = Module.of(options);
  const { channels, mean, deviation } = statistics(m, config);
  // Means stand before the logarithms of variances; SpaceToDepth puts the place in a patch before the channel.
  const parameters = m.op('SpaceToDepth', [encodedSample(m, config)], { blocksize: 2 });
  const order = Array.from({ length: channels }, (_, i) => (i % 4) * (channels / 2) + Math.floor(i / 4));
  const patches = m.op('Gather', [parameters, m.integers(order)], { axis: 1 });
  const latents = m.op('Div', [m.op('Sub', [patches, mean]), deviation]);
  m.output('latents', latents, ['batch', channels, 'latents:2', 'latents:3']);
  return m.finish();
}

/** Of each channel, [channels, 1, 1]. */
function statistics(m: Module, { batchNormEps }: AutoencoderKlFlux2Config) {
  const [channels] = m.shape('bn.running_mean', 1);
  const pixels = m.shape('decoder.conv_in.weight', 4)[1];
  if (channels !== 4 * pixels)
    throw new WeightsFileError(`The statistics are of ${channels} channels, and 2 x 2 pixels have ${4 * pixels}.`);
  const column = (name: string): Value => m.reshape(m.weight(name), -1, 1, 1);
  const variance = m.add(column('bn.running_var'), m.number(batchNormEps));
  return { channels, mean: column('bn.running_mean'), deviation: m.op('Sqrt', [variance]) };
}
