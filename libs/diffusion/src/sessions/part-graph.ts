import { existsSync } from 'node:fs';
import { cures, ModelFolderError, UnsupportedConfigError } from '../errors';
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
  /** The graphs that read its weights, the one that draws first. */
  readonly graphs?: readonly BuildGraph[];
}

/** Writes a part's graph. */
export type BuildGraph = (options: ModuleOptions) => BuiltGraph;

/** What decides how the graph of a part is written. */
export interface PartOptions extends Pick<LoadOptions, 'device' | 'changedWeights'> {
  /** Type that CUDA computes in: some parts have values that half precision cannot hold. */
  onCuda: NonNullable<ModuleOptions['precision']>;
  isAdapted: boolean;
}

/** Writes the graph of a part for a device. @throws ModelFolderError if its weights are not what it needs */
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
    if (error instanceof WeightsFileError || error instanceof UnsupportedConfigError) throw misfit(file, error);
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw isMissing(file);
    throw error;
  }
}

const isMissing = (file: string): ModelFolderError => new ModelFolderError(file, 'is missing', cures.installAgain);

/** @param error that the part's weights are not what its graph needs */
export const misfit = (file: string, { message }: Error): ModelFolderError =>
  new ModelFolderError(file, `is not what its graph needs: ${message.replace(/\.$/, '')}`, cures.plainWeights);

/** Opens a part. @throws ModelFolderError, OutOfMemoryError and others as `ModelSession.open` does */
export async function openPart(
  files: PartFiles,
  build: BuildGraph,
  options: LoadOptions,
  { onCuda, isAdapted }: Pick<PartOptions, 'onCuda' | 'isAdapted'>,
): Promise<ModelSession> {
  options.signal?.throwIfAborted();
  const graph = await graphOfPart(files, build, { ...options, onCuda, isAdapted });
  return ModelSession.open(graph, options).catch((error: unknown) => {
    // Whoever deletes a model while it is drawn with takes its files from under ONNX Runtime.
    throw existsSync(files.file) ? error : isMissing(files.file);
  });
}
