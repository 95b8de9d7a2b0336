import { countOf, type NamedTensors, type TensorType } from './named-tensor';

/** How the weights of a model are stored. */
export type Precision = 'float32' | 'float16' | 'bfloat16' | 'float8' | 'int8';

const precisions: Partial<Record<TensorType, Precision>> = {
  F64: 'float32',
  F32: 'float32',
  F16: 'float16',
  BF16: 'bfloat16',
  F8_E4M3: 'float8',
  F8_E5M2: 'float8',
  I8: 'int8',
};

/** How most weights of a part are stored; int8 as soon as some are, which convolutions never are. */
export function precisionOf(tensors: NamedTensors): Precision {
  const counts = new Map<TensorType, number>();
  for (const { type, shape } of tensors.values()) counts.set(type, (counts.get(type) ?? 0) + countOf(shape));
  const [most] = [...counts].sort(([, a], [, b]) => b - a).map(([type]) => type);
  // Blocks of GGUF are no form of an installed model.
  return precisions[counts.has('I8') ? 'I8' : (most ?? 'F32')] ?? 'float32';
}
