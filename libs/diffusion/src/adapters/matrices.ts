import { InferenceSession, Tensor } from '../sessions/onnx-runtime';
import { emptyGraph, encodeGraph, type ValueInfo } from '../graph/graph';
import { spinning } from '../sessions/device';

let session: Promise<InferenceSession> | undefined;

/** A graph of one node: `product` = `left` x `right`. */
function openProduct(): Promise<InferenceSession> {
  const value = (name: string, ...shape: string[]): ValueInfo => ({ name, type: 'float32', shape });
  const graph = {
    ...emptyGraph(),
    nodes: [
      { name: 'it', opType: 'MatMul', domain: '', inputs: ['left', 'right'], outputs: ['product'], attributes: {} },
    ],
    inputs: [value('left', 'rows', 'inner'), value('right', 'inner', 'columns')],
    outputs: [value('product', 'rows', 'columns')],
  };
  // Reading weights takes most of the time, in which no thread should spin.
  return InferenceSession.create(encodeGraph(graph, new Map()), spinning(0));
}

/** [rows, inner] x [inner, columns], row-major, on all cores. */
export async function multiply(left: Float32Array, right: Float32Array, inner: number): Promise<Float32Array> {
  const { product } = await (
    await (session ??= openProduct())
  ).run({
    left: new Tensor('float32', left, [left.length / inner, inner]),
    right: new Tensor('float32', right, [inner, right.length / inner]),
  });
  return product.data as Float32Array;
}

/** [outer, rows, columns] as [outer, columns, rows]. */
export function swapAxes(values: Float32Array, rows: number, columns: number): Float32Array {
  const size = rows * columns;
  const swapped = new Float32Array(values.length);
  for (let begin = 0; begin < values.length; begin += size)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        swapped[begin + column * rows + row] = values[begin + row * columns + column];
  return swapped;
}

/** Every value of `left` times the whole of `right` in its place. @param widths their numbers of columns */
export function kronecker(left: Float32Array, right: Float32Array, widths: readonly [number, number]): Float32Array {
  const [leftWidth, rightWidth] = widths;
  const result = new Float32Array(left.length * right.length);
  let at = 0;
  for (let i = 0; i < left.length; i += leftWidth)
    for (let k = 0; k < right.length; k += rightWidth)
      for (let j = i; j < i + leftWidth; j++)
        for (let l = k; l < k + rightWidth; l++) result[at++] = left[j] * right[l];
  return result;
}

/** Some of a matrix's rows: one of equal parts of them, perhaps with its two halves the other way round. */
export interface Rows {
  index: number;
  /** Number of parts. */
  count: number;
  isSwapped: boolean;
}

export function cutRows(values: Float32Array, { index, count, isSwapped }: Rows): Float32Array {
  const size = values.length / count;
  const part = values.slice(index * size, (index + 1) * size);
  if (!isSwapped) return part;
  const half = size / 2;
  const swapped = new Float32Array(size);
  swapped.set(part.subarray(half));
  swapped.set(part.subarray(0, half), half);
  return swapped;
}
