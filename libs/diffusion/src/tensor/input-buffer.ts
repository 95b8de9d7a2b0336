import { Tensor } from 'onnxruntime-node';
import { decodeFloat16, encodeFloat16 } from './half';

/** The element types of Stable Diffusion graphs' inputs and outputs. */
export type ElementType = 'float32' | 'float16' | 'int32' | 'int64';

/** Where a tensor's elements are; halves as their bits. */
type Storage = Float32Array | Uint16Array | Int32Array | BigInt64Array;

/** A tensor's content, which may be sent to another thread. */
export interface TensorCopy {
  type: ElementType;
  dims: readonly number[];
  data: Storage;
}

/**
 * A graph's input that is allocated once and written many times: `values` are float32, `tensor` has the graph's type.
 * For float32 both share memory; for every other type `commit` converts. Integers are rounded to nearest.
 */
export class InputBuffer {
  readonly values: Float32Array;
  readonly tensor: Tensor;
  private readonly storage: Storage;

  /** @param dims shape; [] is a single number */
  constructor(type: ElementType, dims: readonly number[]) {
    const size = dims.reduce((product, dim) => product * dim, 1);
    this.values = new Float32Array(size);
    this.storage = type === 'float32' ? this.values : new storages[type](size);
    this.tensor = tensorOf(type, this.storage, dims);
  }

  /** Converts `values` to the graph's type, and returns the tensor. */
  commit(): Tensor {
    const storage = this.storage;
    if (storage instanceof Uint16Array) storage.set(encodeFloat16(this.values));
    else if (storage instanceof Int32Array) storage.set(this.values.map(Math.round));
    else if (storage instanceof BigInt64Array)
      for (let i = 0; i < storage.length; i++) storage[i] = BigInt(Math.round(this.values[i]));
    return this.tensor;
  }

  /** `count` entries of the first axis, starting at `first`, as they were committed: shares memory. */
  rows(first: number, count: number): Tensor {
    const { dims, type } = this.tensor;
    const size = this.values.length / dims[0];
    return tensorOf(type, this.storage.subarray(first * size, (first + count) * size), [count, ...dims.slice(1)]);
  }
}

/**
 * A tensor on our own memory. From Node 24 on there is `Float16Array`, which a tensor then returns for
 * halves; ONNX Runtime 1.30 reads its length as 0 (microsoft/onnxruntime#32323). It accepts a `Uint16Array`
 * of their bits everywhere.
 */
function tensorOf(type: Tensor.Type, storage: Storage, dims: readonly number[]): Tensor {
  const tensor = new Tensor(type, storage, dims);
  return type === 'float16' ? Object.defineProperty(tensor, 'data', { value: storage }) : tensor;
}

/** A copy of its own: what is sent to another thread with its memory is gone here. */
export function copyOfTensor({ type, dims, data }: Tensor): TensorCopy {
  const view = data as Storage;
  // Bits, whether or not the runtime has `Float16Array`.
  const bits = type === 'float16' ? new Uint16Array(view.buffer, view.byteOffset, view.byteLength / 2) : view;
  return { type: type as ElementType, dims, data: bits.slice() };
}

export function tensorFromCopy({ type, data, dims }: TensorCopy): Tensor {
  return tensorOf(type, data, dims);
}

const storages = { float16: Uint16Array, int32: Int32Array, int64: BigInt64Array };

/** The elements of a float32 or float16 tensor as float32, with or without `Float16Array` in the runtime. */
export function toFloat32(tensor: Tensor): Float32Array {
  const { data } = tensor;
  if (data instanceof Float32Array) return data;
  if (tensor.type !== 'float16' || !ArrayBuffer.isView(data))
    throw new TypeError(`A ${tensor.type} tensor holds no floating-point numbers.`);
  return decodeFloat16(new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2));
}
