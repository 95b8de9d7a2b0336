import { InferenceSession, Tensor } from 'onnxruntime-node';
import { emptyGraph, encodeGraph, type ValueInfo } from '../graph/graph';

let session: Promise<InferenceSession> | undefined;

/** A graph of one node: `product` = `left` x `right`. */
function openProduct(): Promise<InferenceSession> {
  const value = (name: string, ...shape: string[]): ValueInfo => ({ name, type: 'float32', shape });
  const node = { name: 'product', opType: 'MatMul', domain: '', attributes: {} };
  const graph = {
    ...emptyGraph(),
    nodes: [{ ...node, inputs: ['left', 'right'], outputs: ['product'] }],
    inputs: [value('left', 'rows', 'inner'), value('right', 'inner', 'columns')],
    outputs: [value('product', 'rows', 'columns')],
  };
  // Reading weights takes most of the time, in which no thread should spin.
  const extra = { session: { intra_op: { allow_spinning: '0' } } };
  return InferenceSession.create(encodeGraph(graph, new Map()), { extra });
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

/** The product of every value with the whole of another matrix in its place. */
export function kronecker(
  left: Float32Array,
  leftColumns: number,
  right: Float32Array,
  rightColumns: number,
): Float32Array {
  const [leftRows, rightRows] = [left.length / leftColumns, right.length / rightColumns];
  const result = new Float32Array(left.length * right.length);
  let at = 0;
  for (let i = 0; i < leftRows; i++)
    for (let k = 0; k < rightRows; k++)
      for (let j = 0; j < leftColumns; j++) {
        const factor = left[i * leftColumns + j];
        for (let l = 0; l < rightColumns; l++) result[at++] = factor * right[k * rightColumns + l];
      }
  return result;
}

/** Value by value. */
export function hadamard(left: Float32Array, right: Float32Array): Float32Array {
  return left.map((value, i) => value * right[i]);
}

/** Row by row, every value of one matrix times every value of the other: [rows, m] and [rows, n] to [rows, m * n]. */
export function rowProducts(left: Float32Array, right: Float32Array, rows: number): Float32Array {
  const [m, n] = [left.length / rows, right.length / rows];
  const result = new Float32Array(rows * m * n);
  let at = 0;
  for (let row = 0; row < rows; row++)
    for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) result[at++] = left[row * m + i] * right[row * n + j];
  return result;
}

/** Every row of one matrix times every row of the other, value by value: [m, columns] and [n, columns] to [m * n, columns]. */
export function rowPairs(left: Float32Array, right: Float32Array, columns: number): Float32Array {
  const result = new Float32Array((left.length / columns) * right.length);
  let at = 0;
  for (let i = 0; i < left.length; i += columns)
    for (let j = 0; j < right.length; j += columns)
      for (let column = 0; column < columns; column++) result[at++] = left[i + column] * right[j + column];
  return result;
}
