import { join } from 'node:path';
import { autoencoderKlConfigOf, autoencoderKlDecoder, autoencoderKlEncoder } from '../architectures/autoencoder-kl';
import {
  autoencoderKlFlux2ConfigOf,
  autoencoderKlFlux2Decoder,
  autoencoderKlFlux2Encoder,
} from '../architectures/autoencoder-kl-flux2';
import { autoencoderTinyDecoder, autoencoderTinyEncoder } from '../architectures/autoencoder-tiny';
import { type Scaling, VaeFiles, type VaeUse } from '../autoencoders/vae';
import { cures, ModelFolderError, resultsOf } from '../errors';
import type { ModuleOptions } from '../graph/module';
import type { NamedTensors } from '../weights/named-tensor';
import type { ReadFiles } from './family';
import { configOf } from './read-config';

/** `AutoencoderKL`, or the tiny one in its place. @param usual how its latents are scaled if its files do not say */
export async function autoencoderKl(files: ReadFiles, usual: Scaling): Promise<VaeFiles> {
  const { config, scaling } = await resultsOf({
    config: () => configOf(files, 'vae', autoencoderKlConfigOf) ?? autoencoderKlConfigOf({}),
    scaling: () => scalingOf(files, usual),
  });
  const tensors = files.tensors.get('vae')!;
  const use = { scaleFactor: scaleFactorOf(tensors), latentChannels: latentChannelsOf(tensors), scaling };
  if (tensors.has('decoder.layers.0.weight'))
    return vaeOf(files, { decoder: autoencoderTinyDecoder, encoder: autoencoderTinyEncoder, ...use });
  return vaeOf(files, {
    decoder: (options: ModuleOptions) => autoencoderKlDecoder(options, config),
    encoder: (options: ModuleOptions) => autoencoderKlEncoder(options, config),
    ...use,
  });
}

/**
 * `AutoencoderKLFlux2`, whose graphs scale each channel by the statistics of a batch norm.
 * @param batchNormEps what counts more than the file's own
 */
export function autoencoderKlFlux2(files: ReadFiles, batchNormEps?: number): VaeFiles {
  const tensors = files.tensors.get('vae')!;
  const own = configOf(files, 'vae', autoencoderKlFlux2ConfigOf) ?? autoencoderKlFlux2ConfigOf({});
  const config = { ...own, batchNormEps: batchNormEps ?? own.batchNormEps };
  return vaeOf(files, {
    decoder: (options) => autoencoderKlFlux2Decoder(options, config),
    encoder: (options) => autoencoderKlFlux2Encoder(options, config),
    scaleFactor: 2 * scaleFactorOf(tensors),
    latentChannels: tensors.get('bn.running_mean')?.shape[0] ?? latentChannelsOf(tensors),
  });
}

const vaeOf = ({ tensors, files }: ReadFiles, use: VaeUse): VaeFiles =>
  new VaeFiles(tensors.get('vae')!, files.get('vae')!, use);

const latentChannelsOf = (vae: NamedTensors): number | undefined =>
  (vae.get('decoder.conv_in.weight') ?? vae.get('decoder.layers.0.weight'))?.shape[1];

/** Pixels of the picture's edge for one of those that the decoder begins with. */
export function scaleFactorOf(vae: NamedTensors): number {
  const levels = [...vae.keys()].filter((name) => /^decoder\.up_blocks\.\d+\.upsamplers\.0\.conv\.weight$/.test(name));
  return 2 ** (levels.length || 3);
}

/** diffusers leaves null what does not apply. @throws ModelFolderError */
function scalingOf({ path, configs }: ReadFiles, usual: Scaling): Scaling {
  const file = join(path, 'vae', 'config.json');
  const { scaling_factor: factor = null, shift_factor: shift = null } = configs.get('vae') ?? {};
  if (factor !== null && (!Number.isFinite(factor) || factor === 0))
    throw new ModelFolderError(file, 'has a scaling_factor that is no number, infinite or 0', cures.correct);
  if (shift !== null && !Number.isFinite(shift))
    throw new ModelFolderError(file, 'has a shift_factor that is no number or infinite', cures.correct);
  return { factor: Number(factor ?? usual.factor), shift: Number(shift ?? usual.shift) };
}
