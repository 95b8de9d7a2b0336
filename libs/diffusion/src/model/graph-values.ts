import type { OnnxModel } from '../onnx/onnx-model';
import type { ElementType } from '../tensor/input-buffer';
import { cures } from './cures';
import { ModelFolderError } from './errors';

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
const typeNames: Record<number, string | undefined> = {
  1: 'float32',
  2: 'uint8',
  3: 'int8',
  4: 'uint16',
  5: 'int16',
  6: 'int32',
  7: 'int64',
  8: 'string',
  9: 'bool',
  10: 'float16',
  11: 'float64',
  12: 'uint32',
  13: 'uint64',
  16: 'bfloat16',
  17: 'float8e4m3fn',
  18: 'float8e4m3fnuz',
  19: 'float8e5m2',
  20: 'float8e5m2fnuz',
};

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
export function fixedLength(dimension: number | string | undefined): number | undefined {
  return typeof dimension === 'number' && dimension > 0 ? dimension : undefined;
}
