/** Weights of linear layers in int8. */
import { hadamard } from '../tensor/hadamard';
import type { Int8Form } from '../weights/named-tensor';
import type { Value } from './graph';
import { microsoft } from './graph-builder';
import type { Module } from './module';

/** Tokens of a layer's input in uint8. */
interface Quantised {
  /** [rows * tokens, in], around 128. */
  numbers: Value;
  /** What the numbers of each token are multiplied with, [rows * tokens, 1]. */
  scales: Value;
}

/** What was made of an input, in each list of nodes: layers with the same input share it. */
const quantised = new WeakMap<object, Map<string, Quantised>>();

/**
 * x W of a weight in int8, where each token becomes uint8 with a scale of its own, so that the bits of a token do
 * not depend on the tokens beside it. ONNX Runtime's product of uint8 and int8 is several times as fast as those of
 * other pairs of signs.
 */
export function int8Product(layer: Module, x: Value, { scale, rotation }: Int8Form): Value {
  const [out, into] = layer.shape('weight', 2);
  const known = quantised.get(layer.scope) ?? new Map<string, Quantised>();
  quantised.set(layer.scope, known);
  const key = `${x} by ${rotation}`;
  const { numbers, scales } = known.get(key) ?? quantise(layer, x, rotation, into);
  known.set(key, { numbers, scales });
  const one = layer.exactly('one', [1], []);
  // Each layer has its own zeros: where ONNX Runtime makes the weight uint8, it can do that with a constant only once.
  const zeros = layer.bytes('int8', 0, [out], `${layer.path}/zeros`);
  const weight = [layer.stored('weight'), layer.stored('weight_scale', scale), zeros];
  const inputs = [numbers, one, layer.bytes('uint8', 128, []), ...weight];
  const y = layer.mul(layer.op('QGemm', inputs, { transB: 1 }, microsoft), scales);
  const lengths = [layer.op('Shape', [x], { start: 0, end: 2 }), layer.integers([out])];
  return layer.op('Reshape', [y, layer.concat(lengths, 0)]);
}

function quantise(m: Module, x: Value, rotation: number, width: number): Quantised {
  const tokens = rotation === 1 ? m.reshape(x, -1, width) : rotated(m, x, rotation, width);
  const ends = ['ReduceMax', 'ReduceMin'].map((end) => m.op(end, [tokens, m.integers([1])], { keepdims: 0 }));
  // A token of zeros has a scale too.
  const largest = m.op('Max', [ends[0], m.op('Neg', [ends[1]]), m.exactly('least', [1e-30], [])]);
  const scales = m.mul(largest, m.exactly('1/127', [1 / 127], []));
  const middles = m.op('Expand', [m.bytes('uint8', 128, [1]), m.op('Shape', [scales])]);
  const numbers = m.op('QuantizeLinear', [tokens, scales, middles], { axis: 0 });
  return { numbers, scales: m.op('Unsqueeze', [scales, m.integers([1])]) };
}

/** A weight in the type that is computed in: constants, which are computed as the graph is loaded. */
export function int8Weight(m: Module, name: string, { scale, rotation }: Int8Form): Value {
  const numbers = m.op('DequantizeLinear', [m.stored(name), m.stored(`${name}_scale`, scale)], { axis: 0 });
  return m.inPrecision(rotation === 1 ? numbers : rotated(m, numbers, rotation, m.shape(name, 2)[1]));
}

/** x times the matrix of a rotation, block by block, as rows of `width`. */
function rotated(m: Module, x: Value, block: number, width: number): Value {
  const matrix = m.exactly(`hadamard(${block})`, hadamard(block), [block, block]);
  return m.reshape(m.matmul(m.reshape(x, -1, block), matrix), -1, width);
}
