import { cures } from '../model/cures';
import { ModelFolderError } from '../model/errors';
import { foreignPart } from '../model/foreign-part';
import { elementType, fixedLength, outputOf } from '../model/graph-values';
import type { GraphValues, ValueFacts } from '../model/graph-values';
import type { JsonObject } from '../model/json-file';

const floats = ['float32', 'float16'] as const;
const numbers = ['float32', 'float16', 'int64', 'int32'] as const;

/** An input, and the element type in which it is written. */
const written = <T extends (typeof numbers)[number]>(file: string, value: ValueFacts, allowed: readonly T[]) => ({
  ...value,
  type: elementType(file, value, allowed),
});

/** Of a distilled U-Net's guidance embedding, as its configuration tells it. */
export function guidanceWidth({ time_cond_proj_dim: width }: JsonObject): number | undefined {
  return typeof width === 'number' ? width : undefined;
}

/**
 * What the U-Net of a Stable Diffusion 1.x or 2.x takes and gives.
 * @param configuredWidth of the guidance embedding, for graphs that leave it free
 * @throws ModelFolderError if the graph is none
 */
export function unetValues(graph: GraphValues, configuredWidth = 0) {
  const { file, inputs } = graph;
  if (inputs.length < 3) throw foreignPart(graph, 'a U-Net takes latents, a timestep and embeddings');
  const input = (name: string): ValueFacts => {
    const found = inputs.find((value) => value.name === name);
    if (!found) throw new ModelFolderError(file, `has no input ${name}`, cures.exportAgain);
    return found;
  };
  const sample = written(file, input('sample'), floats);
  const timestep = written(file, input('timestep'), numbers);
  const prompt = written(file, input('encoder_hidden_states'), floats);
  const conditions = inputs.find(({ name }) => name === 'timestep_cond');
  const guidance = conditions && written(file, conditions, floats);
  const width = fixedLength(guidance?.shape[1]) ?? configuredWidth;
  if (guidance && width < 4)
    throw new ModelFolderError(file, 'takes timestep_cond, and nothing tells its width', cures.exportAgain);
  const known = [sample, timestep, prompt, guidance].map((value) => value?.name);
  const other = inputs.find(({ name }) => !known.includes(name));
  if (other)
    throw new ModelFolderError(
      file,
      `takes ${other.name}, which Stable Diffusion 1.x and 2.x do not have`,
      cures.otherModel,
    );
  if (timestep.shape.length > 1)
    throw new ModelFolderError(file, `takes a timestep of rank ${timestep.shape.length}`, cures.exportAgain);
  const output = outputOf(graph, 'out_sample');
  return {
    ...{ sample, timestep, prompt, guidance, output },
    guidanceWidth: width,
    dtype: elementType(file, output, floats),
    /** Lengths of latents and embeddings, where the graph fixes them. */
    facts: {
      inChannels: fixedLength(sample.shape[1]),
      outChannels: fixedLength(output.shape[1]),
      height: fixedLength(sample.shape[2]),
      width: fixedLength(sample.shape[3]),
      tokens: fixedLength(prompt.shape[1]),
    },
    /** Rows of a call, where the graph fixes them. */
    fixedRows: fixedLength(sample.shape[0]),
  };
}
