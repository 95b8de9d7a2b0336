import { cures, ModelFolderError, resultsOf, UnsupportedConfigError } from '../errors';
import type { BuiltGraph } from '../graph/module';
import { misfit, type PartFiles } from '../sessions/part-graph';
import { WeightsFileError } from '../weights/named-tensor';
import type { ModelParts } from './family';
import { blamingConfig } from './read-config';

/**
 * Writes the graphs of all parts, for no device: so what is wrong with configurations and weights is told before anything
 * is loaded.
 * @throws ModelFolderError
 */
export async function checkParts(
  path: string,
  { denoiser, conditioner, autoencoder }: Pick<ModelParts, 'denoiser' | 'conditioner' | 'autoencoder'>,
): Promise<void> {
  const encoders = conditioner.encoders.map((encoder) => [encoder.part, () => graphsOf(path, encoder)] as const);
  const { drawing, decoding } = await resultsOf<Record<'drawing' | 'decoding', BuiltGraph[]>>({
    drawing: () => graphsOf(path, denoiser),
    decoding: () => graphsOf(path, autoencoder),
    ...Object.fromEntries(encoders),
  });
  refuseUnread(denoiser, drawing);
  refuseUnread(autoencoder, decoding);
}

function graphsOf(path: string, { part, file, tensors, graphs = [] }: PartFiles): BuiltGraph[] {
  const empty = [...tensors].find(([, { shape }]) => shape.includes(0));
  if (empty) throw misfit(file, new WeightsFileError(`The weight ${empty[0]} has no values.`));
  try {
    return blamingConfig(path, part, () => graphs.map((build) => build({ tensors })));
  } catch (error) {
    throw error instanceof WeightsFileError || error instanceof UnsupportedConfigError ? misfit(file, error) : error;
  }
}

/**
 * A weight that no graph reads belongs to a layer that nothing here knows. Exports, and files with other names than those
 * of diffusers, have weights beside the model's: constants of a graph, what its training had.
 */
function refuseUnread({ file, tensors }: PartFiles, built: readonly BuiltGraph[]): void {
  const isOfDiffusers =
    /\.(?:safetensors|gguf)$/.test(file) && [...tensors].every(([name, tensor]) => name === tensor.name);
  const [first = [], ...others] = built.map(({ unused }) => unused);
  const unread = first.find((name) => others.every((names) => names.includes(name)));
  if (unread !== undefined && isOfDiffusers)
    throw new ModelFolderError(file, `has ${unread}, which is of no layer that is known`, cures.otherModel);
}
