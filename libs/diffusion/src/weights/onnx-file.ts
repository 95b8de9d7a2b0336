import { statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openOnnx, traceWeights } from '../onnx/onnx-model';
import type { OnnxInitializer, OnnxNode } from '../onnx/onnx-proto';
import {
  byteLength,
  countOf,
  type NamedTensor,
  type NamedTensors,
  type TensorType,
  tensorTypes,
  WeightsFileError,
} from './named-tensor';

/** Whole numbers are other things in a graph than weights, and blocks are in no graph. */
const { I8: _, ...floatTypes } = tensorTypes;
const typeOf = new Map(
  Object.entries(floatTypes)
    .filter(([, { onnx }]) => onnx > 0)
    .map(([type, { onnx }]): [number, TensorType] => [onnx, type as TensorType]),
);

/**
 * The weights of an exported graph with the names that they had in PyTorch. Exporters fold some away (a linear layer's
 * weight is stored transposed as `onnx::MatMul_123`); the node that uses it tells its name, because it is called by the
 * path of its module (`/down_blocks.0/…/to_q/MatMul`).
 * @throws OnnxModelError if it is malformed, WeightsFileError if a file beside it lacks values
 */
export function readOnnx(path: string): NamedTensors {
  const model = openOnnx(path);
  const sizes = new Map<string, number>();
  const found = new Map<string, NamedTensor>();
  const add = (name: string, { dims, dataType, data }: OnnxInitializer, change: Partial<NamedTensor>): void => {
    const type = typeOf.get(dataType);
    if (!type || !data || found.has(name)) return;
    const file = data.location === undefined ? path : join(dirname(path), data.location);
    const tensor = { name, type, shape: dims, file, offset: data.begin, ...change };
    if (!sizes.has(file)) sizes.set(file, statSync(file).size);
    const isCut = data.begin + byteLength(tensor) > sizes.get(file)!;
    if (isCut) throw new WeightsFileError(`${basename(file)} ends before the weight ${JSON.stringify(name)}.`);
    found.set(name, tensor);
  };
  const trace = traceWeights(model);
  const traced = new Set<string>();
  for (const node of model.nodes)
    for (const [i, input] of node.inputs.entries()) {
      const origin = trace(input);
      const parameter = parameterOf(node, i);
      if (!origin || !parameter || countOf(origin.initializer.dims) === 1) continue;
      const { initializer, names, transposes } = origin;
      const { dims } = initializer;
      const module = node.name.split('/').slice(0, -1).filter(Boolean).join('.');
      const flips = transposes + (node.ints.get('transB')?.[0] ?? 0);
      traced.add(initializer.name);
      // Weights of a normalisation over groups are stored as [channels, 1, 1].
      const isFlat = ['Mul', 'Add'].includes(node.opType);
      const isTransposed = ['MatMul', 'Gemm'].includes(node.opType) && dims.length === 2 && flips % 2 === 0;
      const shape = isFlat ? dims.filter((length) => length > 1) : isTransposed ? dims.toReversed() : dims;
      // Layers with equal weights share one, so that its own name is that of another layer.
      for (const name of [...names.filter((name) => name.endsWith(`.${parameter}`)), `${module}.${parameter}`])
        if (!name.startsWith('.')) add(name, initializer, { shape, isTransposed });
    }
  for (const [name, initializer] of model.initializers) if (!traced.has(name)) add(name, initializer, {});
  return found;
}

/** Which parameter of its module a node's input is, if it is one. */
function parameterOf({ opType }: OnnxNode, input: number): 'weight' | 'bias' | undefined {
  if (['MatMul', 'Gemm', 'Conv', 'LayerNormalization'].includes(opType))
    return ([undefined, 'weight', 'bias'] as const)[input];
  if (opType === 'Mul' || (opType === 'Gather' && input === 0)) return 'weight';
  return opType === 'Add' ? 'bias' : undefined;
}
