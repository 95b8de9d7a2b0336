import { cures } from '../model/cures';
import { ModelFolderError } from '../model/errors';
import { foreignPart } from '../model/foreign-part';
import { elementType, outputOf } from '../model/graph-values';
import type { GraphValues } from '../model/graph-values';

/** What a VAE decoder takes and gives. @throws ModelFolderError if the graph is none */
export function decoderValues(graph: GraphValues) {
  const { file, inputs } = graph;
  if (inputs.length > 1) throw new ModelFolderError(file, 'takes more than latents', cures.oneExport);
  const latents = inputs.at(0);
  if (latents === undefined || latents.shape.length === 2) throw foreignPart(graph, 'a VAE decoder takes latents');
  const output = outputOf(graph, 'sample');
  return {
    latents,
    inputType: elementType(file, latents, ['float32', 'float16']),
    output,
    dtype: elementType(file, output, ['float32', 'float16']),
  };
}
