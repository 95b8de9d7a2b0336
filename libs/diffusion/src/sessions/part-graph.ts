import { UnsupportedConfigError } from '../architectures/config';
import { cures, ModelFolderError } from '../errors';
import type { BuiltGraph, ModuleOptions } from '../graph/module';
import { type NamedTensors, tensorsBelow, WeightsFileError } from '../weights/named-tensor';
import type { PartName } from '../weights/original-names';
import { readSafetensors } from '../weights/safetensors-file';
import { providerOf } from './device';
import { type LoadOptions, ModelSession } from './model-session';
import { type PlacedGraph, placeGraph } from './placed-graph';

/** A part of a model: where its weights are. */
export interface PartFiles {
  /** As diffusers calls its folder. */
  readonly part: PartName;
  readonly tensors: NamedTensors;
  /** Path of the weights, for messages. */
  readonly file: string;
}

/** Writes a part's graph. */
export type BuildGraph = (options: ModuleOptions) => BuiltGraph;

/** What decides how the graph of a part is written. */
export interface PartOptions extends Pick<LoadOptions, 'device' | 'changedWeights'> {
  /** Type that CUDA computes in: some parts have values that half precision cannot hold. */
  onCuda: NonNullable<ModuleOptions['precision']>;
  isAdapted: boolean;
}

/** Writes the graph of a part for a device. @throws ModelFolderError if it lacks weights */
export async function graphOfPart(
  { part, tensors: own, file }: PartFiles,
  build: BuildGraph,
  { device, changedWeights, onCuda, isAdapted }: PartOptions,
): Promise<PlacedGraph> {
  const changed = changedWeights === undefined ? [] : tensorsBelow(await readSafetensors(changedWeights), `${part}.`);
  const provider = providerOf(device);
  const options: ModuleOptions = {
    tensors: new Map([...own, ...changed]),
    precision: provider === 'cuda' ? onCuda : 'float32',
    isAdapted: () => isAdapted,
    isPlain: provider === 'webgpu',
    isSteady: provider === 'cpu',
  };
  try {
    return placeGraph(build(options).graph, file);
  } catch (error) {
    const isKnown = error instanceof WeightsFileError || error instanceof UnsupportedConfigError;
    if (!isKnown) throw error;
    const reason = `is not what its graph needs: ${error.message.replace(/\.$/, '')}`;
    throw new ModelFolderError(file, reason, cures.plainWeights);
  }
}

/** Opens a part. @throws ModelFolderError, OutOfMemoryError and others as `ModelSession.open` does */
export async function openPart(
  files: PartFiles,
  build: BuildGraph,
  options: LoadOptions,
  { onCuda, isAdapted }: Pick<PartOptions, 'onCuda' | 'isAdapted'>,
): Promise<ModelSession> {
  options.signal?.throwIfAborted();
  return ModelSession.open(await graphOfPart(files, build, { ...options, onCuda, isAdapted }), options);
}
