import type { OnnxModel } from '../onnx/onnx-model';
import type { ElementType } from '../tensor/input-buffer';
import { cures, ModelFolderError } from '../errors';
import type { JsonObject } from './model-files';

/** An input or output of a graph. A dimension is a number if it is fixed and a name if it is free. */
export interface ValueFacts {
  name: string;
  type: string;
  shape: readonly (number | string)[];
}

/** What a graph takes and gives: as its file says, or as the runtime does that has loaded it. */
export interface GraphValues {
  readonly file: string;
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];
}

/** ONNX Runtime's names by TensorProto.DataType, and ONNX's own for those that it never gives to JavaScript. */
const typeNames = [
  ...[undefined, 'float32', 'uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'string', 'bool', 'float16'],
  ...['float64', 'uint32', 'uint64', undefined, undefined, 'bfloat16'],
  ...['float8e4m3fn', 'float8e4m3fnuz', 'float8e5m2', 'float8e5m2fnuz'],
];

/**
 * What the file of a graph says about it; undefined if it leaves a type open, which the runtime then infers, or names
 * one that is not in the table, of which the runtime then says whether it can be used. Constants that old exporters list
 * among the inputs are none.
 */
export function valuesOf({ path, inputs, outputs, initializers, shapes, types }: OnnxModel): GraphValues | undefined {
  let isComplete = true;
  const factsOf = (name: string): ValueFacts => {
    const type = typeNames[types.get(name) ?? 0];
    isComplete &&= type !== undefined;
    return { name, type: type ?? '', shape: (shapes.get(name) ?? []).map((length) => length ?? '') };
  };
  const values = {
    file: path,
    inputs: inputs.filter((name) => !initializers.has(name)).map(factsOf),
    outputs: outputs.map(factsOf),
  };
  return isComplete ? values : undefined;
}

/**
 * The output with that name, or the first one, because names differ between exporters.
 * @throws ModelFolderError if there is none
 */
export function outputOf({ file, outputs }: GraphValues, name: string): ValueFacts {
  const found = outputs.find((value) => value.name === name) ?? outputs[0];
  if (!found) throw new ModelFolderError(file, 'has no output', cures.exportAgain);
  return found;
}

/** The element type of an input that we write, if its role allows it. */
export function elementType<T extends ElementType>(file: string, value: ValueFacts, allowed: readonly T[]): T {
  const found = allowed.find((type) => type === value.type);
  if (found) return found;
  throw new ModelFolderError(
    file,
    `takes or gives ${value.name} as ${value.type}, where only ${allowed.join(' or ')} can be used`,
    cures.exportAgain,
  );
}

/** A length that the graph fixes; undefined where it is free. */
function fixedLength(dimension: number | string | undefined): number | undefined {
  return typeof dimension === 'number' && dimension > 0 ? dimension : undefined;
}

/**
 * The graph of another part, told by how many inputs it has and of how many dimensions: an exporter may name them as it
 * likes.
 * @param takes what a graph in its place takes: `a VAE decoder takes latents`
 */
function foreignPart({ file, inputs }: GraphValues, takes: string): ModelFolderError {
  const names = inputs.map(({ name }) => name).join(', ') || 'nothing';
  return new ModelFolderError(file, `is the graph of another part: it takes ${names}, where ${takes}`, cures.oneExport);
}

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
