import { countOf } from '../weights/named-tensor';

/** What a graph takes or gives: flat values and their shape. A plain object, so that to make one loads no runtime. */
export interface Tensor {
  readonly type: string;
  readonly data: unknown;
  readonly dims: readonly number[];
}

export type Tensors = Readonly<Record<string, Tensor>>;

export const float32 = (data: Float32Array, dims: readonly number[] = [data.length]): Tensor => ({
  type: 'float32',
  data,
  dims,
});

export const int64 = (data: BigInt64Array, dims: readonly number[]): Tensor => ({ type: 'int64', data, dims });

export const int32 = (data: Int32Array, dims: readonly number[]): Tensor => ({ type: 'int32', data, dims });

/** @param data 1 for true, 0 for false */
export const bool = (data: Uint8Array, dims: readonly number[]): Tensor => ({ type: 'bool', data, dims });

/** The values of a tensor of float32. */
export const floatsOf = ({ data }: Tensor): Float32Array => data as Float32Array;

/** A tensor of the values of each row. @param shape of one row */
export function packed<T>(rows: readonly T[], of: (row: T) => ArrayLike<number>, shape: readonly number[]): Tensor {
  const size = countOf(shape);
  const values = new Float32Array(rows.length * size);
  for (const [i, row] of rows.entries()) values.set(of(row), i * size);
  return float32(values, [rows.length, ...shape]);
}
