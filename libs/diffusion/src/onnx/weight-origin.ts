import type { OnnxModel } from './onnx-model';
import { FLOAT } from './onnx-proto';
import type { OnnxInitializer } from './onnx-proto';

/** The initializer that a node's input comes from, through casts and transpositions. */
export interface WeightOrigin {
  initializer: OnnxInitializer;
  /** Names of the weight and of its cast and transposed forms. */
  names: string[];
  transposes: number;
  /** Whether the weight is only read through a cast to float32, so that it can be stored as float32. */
  cast: boolean;
}

/** Returns a function that finds the origin of a node's input; undefined for a computed value. */
export function traceWeights(model: OnnxModel): (value: string | undefined) => WeightOrigin | undefined {
  const producers = new Map(model.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const uncast = new Set(model.inputs);
  for (const { opType, ints, inputs } of model.nodes)
    if (opType !== 'Cast' || ints.get('to')?.[0] !== FLOAT) inputs.forEach((input) => uncast.add(input));
  return (value) => {
    const names: string[] = [];
    let transposes = 0;
    // In a malformed graph the chain may be a cycle, so it is followed for at most as many steps
    // as the graph has nodes.
    for (let i = 0; value !== undefined && i <= model.nodes.length; i++) {
      names.unshift(value);
      const initializer = model.initializers.get(value);
      if (initializer) return { initializer, names, transposes, cast: !uncast.has(initializer.name) };
      const producer = producers.get(value);
      if (!producer || !['Cast', 'Identity', 'Transpose'].includes(producer.opType)) return undefined;
      if (producer.opType === 'Transpose') {
        if ((producer.ints.get('perm') ?? [1, 0]).join() !== '1,0') return undefined;
        transposes++;
      }
      value = producer.inputs[0];
    }
    return undefined;
  };
}
