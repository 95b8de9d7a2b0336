import { cures } from './cures';
import { ModelFolderError } from './errors';
import type { GraphValues } from './graph-values';

/**
 * The graph of another part, told by how many inputs it has and of how many dimensions: an exporter may name them as it
 * likes.
 * @param takes what a graph in its place takes: `a VAE decoder takes latents`
 */
export function foreignPart({ file, inputs }: GraphValues, takes: string): ModelFolderError {
  const names = inputs.map(({ name }) => name).join(', ') || 'nothing';
  return new ModelFolderError(file, `is the graph of another part: it takes ${names}, where ${takes}`, cures.oneExport);
}
