import { cures } from '../model/cures';
import { ModelFolderError } from '../model/errors';
import { foreignPart } from '../model/foreign-part';
import { elementType, fixedLength, outputOf } from '../model/graph-values';
import type { GraphValues } from '../model/graph-values';

const takes = 'a CLIP text encoder takes token ids alone';

/** What a CLIP text encoder takes and gives. @throws ModelFolderError if the graph is none */
export function textEncoderValues(graph: GraphValues) {
  const { file, inputs } = graph;
  if (inputs.length === 0 || inputs.some(({ shape }) => shape.length > 2)) throw foreignPart(graph, takes);
  if (inputs.length !== 1) {
    const names = inputs.map(({ name }) => name).join(', ');
    throw new ModelFolderError(file, `takes ${names}, where ${takes}`, cures.otherModel);
  }
  const [ids] = inputs;
  const output = outputOf(graph, 'last_hidden_state');
  return {
    ids,
    idType: elementType(file, ids, ['int32', 'int64']),
    output,
    dtype: elementType(file, output, ['float32', 'float16']),
    /** Width of an embedding, if the graph says it. */
    hiddenWidth: fixedLength(output.shape[2]),
    /** Length of a row, if it is fixed. */
    sequenceLength: fixedLength(ids.shape[1]),
  };
}
