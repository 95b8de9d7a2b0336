import type { OnnxModel } from './onnx-model';
import { FLOAT } from './onnx-proto';
import type { OnnxInitializer } from './onnx-proto';

/** Where a node's input comes from: an initializer, through casts and transpositions. */
export interface WeightOrigin {
  initializer: OnnxInitializer;
  /** Names of the weight and of what it is cast to and transposed. */
  names: string[];
  transposes: number;
  /** The weight is only read through a cast to float32, so it may as well be stored as float32. */
  cast: boolean;
}

/** Tells where the values that a graph's nodes take come from; undefined for what is computed. */
export function traceWeights(model: OnnxModel): (value: string | undefined) => WeightOrigin | undefined {
  const producers = new Map(model.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const uncast = new Set(model.inputs);
  for (const { opType, ints, inputs } of model.nodes) {
    if (opType !== 'Cast' || ints.get('to')?.[0] !== FLOAT) inputs.forEach((input) => uncast.add(input));
  }
  return (value) => {
    const names: string[] = [];
    let transposes = 0;
    // In a malformed graph the chain may be a ring: it is no longer than the graph has nodes.
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
