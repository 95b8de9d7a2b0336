import { autoencoderKlDecoder, autoencoderKlEncoder } from '../architectures/autoencoder-kl';
import { autoencoderTinyDecoder, autoencoderTinyEncoder } from '../architectures/autoencoder-tiny';
import { clipTextModel } from '../architectures/clip-text-model';
import { UnsupportedConfigError } from '../architectures/config';
import { controlNetModel } from '../architectures/control-net-model';
import { unet2DConditionModel, type UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import { cures, ModelFolderError } from '../errors';
import type { ControlFolder } from '../families/control-folder';
import type { ModelFolder } from '../families/model-folder';
import type { BuiltGraph, ModuleOptions } from '../graph/module';
import { type Device, providerOf } from '../sessions/device';
import type { LoadOptions } from '../sessions/model-session';
import { type PlacedGraph, placeGraph } from '../sessions/placed-graph';
import { type NamedTensors, tensorsBelow, WeightsFileError } from '../weights/named-tensor';
import type { PartName } from '../weights/original-names';
import { readSafetensors } from '../weights/safetensors-file';

/** The graphs of a model's parts. */
export interface ModelGraphs {
  textEncoders: readonly PlacedGraph[];
  unet: PlacedGraph;
  vaeDecoder: PlacedGraph;
}

/**
 * Writes the graphs of a model, in half precision for CUDA except the decoder, whose values XL's exceed there.
 * @param changedWeights a file as in `LoadOptions`
 * @throws ModelFolderError if a part lacks weights
 */
export async function graphsOf(
  folder: ModelFolder,
  { device, changedWeights }: Pick<LoadOptions, 'device' | 'changedWeights'>,
): Promise<ModelGraphs> {
  const changed = changedWeights === undefined ? new Map<never, never>() : await readSafetensors(changedWeights);
  const graph = (part: PartName, build: (options: ModuleOptions) => BuiltGraph): PlacedGraph => {
    const tensors: NamedTensors = new Map([...folder.tensors.get(part)!, ...tensorsBelow(changed, `${part}.`)]);
    return graphOfPart(part, tensors, folder.files.get(part)!, device, build);
  };
  return {
    textEncoders: folder.textEncoders.map(({ part, config, skip, isNormed, isPooled }) =>
      graph(part, (options) => clipTextModel(options, config, { skips: [skip], isNormed, isPooled })),
    ),
    unet: graph('unet', (options) => unet2DConditionModel(options, folder.unet, true)),
    vaeDecoder: graph('vae', (options) =>
      options.tensors.has('decoder.layers.0.weight')
        ? autoencoderTinyDecoder(options)
        : autoencoderKlDecoder(options, folder.vae),
    ),
  };
}

/** Writes the graph of a model's VAE encoder, always in float32. @throws ModelFolderError if it lacks weights */
export function encoderGraphOf({ tensors, files, vae }: ModelFolder, device: Device): PlacedGraph {
  return graphOfPart('vae', tensors.get('vae')!, files.get('vae')!, device, (options) =>
    options.tensors.has('encoder.layers.0.weight')
      ? autoencoderTinyEncoder(options)
      : autoencoderKlEncoder(options, vae),
  );
}

/**
 * Writes the graph of a ControlNet, in the precision of the U-Net.
 * @throws ModelFolderError if it lacks weights
 */
export function controlGraphOf(
  { tensors, file }: ControlFolder,
  config: UNet2DConditionConfig,
  device: Device,
): PlacedGraph {
  return graphOfPart('controlnet', tensors, file, device, (options) => controlNetModel(options, config));
}

/** @param file of the weights, for messages */
function graphOfPart(
  part: PartName,
  tensors: NamedTensors,
  file: string,
  device: Device,
  build: (options: ModuleOptions) => BuiltGraph,
): PlacedGraph {
  const precision = providerOf(device) === 'cuda' && part !== 'vae' ? 'float16' : 'float32';
  const isAdapted = (): boolean => part !== 'vae' && part !== 'controlnet';
  try {
    const options = { tensors, precision, isAdapted } as const;
    const { graph } = build({ ...options, isPlain: providerOf(device) === 'webgpu', isSteady: device === 'cpu' });
    return placeGraph(graph, file);
  } catch (error) {
    const isKnown = error instanceof WeightsFileError || error instanceof UnsupportedConfigError;
    if (!isKnown) throw error;
    throw new ModelFolderError(
      file,
      `is not what its graph needs: ${error.message.replace(/\.$/, '')}`,
      cures.plainWeights,
    );
  }
}
