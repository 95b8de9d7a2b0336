/** Layers of PyTorch as nodes of a graph; `name` is the layer's below the module `m`. */
import type { Value } from './graph';
import { UnsupportedConfigError } from '../errors';
import { microsoft } from './graph-builder';
import { int8Product } from './int8';
import type { Module } from './module';

/** Columns of a product that ONNX Runtime never shares among threads. */
export const groupRank = 16;

/** Settings of a convolution; by default its size stays the same. */
interface ConvOptions {
  stride?: number;
  /** Rows and columns of zeros at top, left, bottom and right. */
  pads?: readonly number[];
}

export const silu = (m: Module, x: Value): Value => m.op('QuickGelu', [x], { alpha: 1 }, microsoft);

export const relu = (m: Module, x: Value): Value => m.op('Relu', [x]);

export const gelu = (m: Module, x: Value): Value => m.op('Gelu', [x], {}, microsoft);

/** torch.nn.LayerNorm over the last axis of [rows, tokens, width]. */
export function layerNorm(m: Module, x: Value, name: string, epsilon = 1e-5): Value {
  const layer = m.at(name);
  return layer.op('LayerNormalization', [x, layer.weight('weight'), layer.weight('bias')], { axis: 2, epsilon });
}

/** The same without weights, of tokens of this width. */
export function plainLayerNorm(m: Module, x: Value, width: number, epsilon: number): Value {
  const ones = m.floats(`ones(${width})`, Array<number>(width).fill(1));
  return m.op('LayerNormalization', [x, ones], { axis: 2, epsilon });
}

/** torch.nn.RMSNorm over the last axis. */
export function rmsNorm(m: Module, x: Value, name: string, epsilon: number): Value {
  const layer = m.at(name);
  return layer.op('SimplifiedLayerNormalization', [x, layer.weight('weight')], { epsilon });
}

/** The same over each head of tokens [rows, tokens, width]. */
export function headsRmsNorm(m: Module, x: Value, name: string, epsilon: number): Value {
  const [headDim] = m.shape(`${name}.weight`, 1);
  return m.reshape(rmsNorm(m, m.reshape(x, 0, 0, -1, headDim), name, epsilon), 0, 0, -1);
}

/** The gated half of a feed-forward layer, "SwiGLU". */
export const swiGlu = (m: Module, gate: Value, x: Value): Value => m.mul(silu(m, gate), x);

/** Cosines and sines of all positions, each [positions, half of a head]. */
export interface Rotary {
  cos: Value;
  sin: Value;
  /** Whether the pairs that are turned are neighbours; else they stand in the two halves of a head. */
  isInterleaved: boolean;
}

/** Turns each head of tokens [rows, tokens, width] by the angles of its position: "RoPE". */
export function rotaryEmbedding(m: Module, x: Value, { cos, sin, isInterleaved }: Rotary): Value {
  return m.op('RotaryEmbedding', [x, m.integers([0]), cos, sin], { interleaved: Number(isInterleaved) }, microsoft);
}

/** torch.nn.GroupNorm of [rows, channels, height, width]. @throws UnsupportedConfigError */
export function groupNorm(m: Module, x: Value, name: string, groups: number, epsilon: number): Value {
  const layer = m.at(name);
  const [channels] = layer.shape('weight', 1);
  if (channels % groups !== 0)
    throw new UnsupportedConfigError(`"norm_num_groups" is ${groups}, and ${layer.path} has ${channels} channels.`);
  const [ones, zeros] = [1, 0].map((v) => layer.floats(`groups(${groups}, ${v})`, Array<number>(groups).fill(v)));
  const flat = layer.op('InstanceNormalization', [layer.reshape(x, 0, groups, -1), ones, zeros], { epsilon });
  const y = layer.op('Reshape', [flat, layer.op('Shape', [x])]);
  const [weight, bias] = ['weight', 'bias'].map((one) => layer.reshape(layer.weight(one), -1, 1, 1));
  return layer.add(layer.mul(y, weight), bias);
}

/**
 * x @ y with its last two axes swapped. WebGPU has no operator of both and would copy x to the processor: there a weight
 * is turned as the graph is loaded.
 * @param axes how many y has
 */
export function matmulTransposed(m: Module, x: Value, y: Value, axes: number): Value {
  if (!m.isPlain) return m.op('FusedMatMul', [x, y], { transB: 1 }, microsoft);
  return m.matmul(x, m.transpose(y, ...Array(axes - 2).keys(), axes - 1, axes - 2));
}

/**
 * torch.nn.Linear of [rows, tokens, in], with its adapter: x W + b + (x A) B.
 * @param isVector whether there is one token. Then the factors stand on the left: on the right, a pair that all rows
 * share would make one product of the rows, which gives a row other bits than alone. The token stands twice in the
 * product with a weight for the same reason: that of a single one is summed in another order
 */
export function linear(m: Module, x: Value, name: string, isVector = false): Value {
  const layer = m.at(name);
  const [out, into] = layer.shape('weight', 2);
  const y = product(layer, x, isVector);
  const biased = layer.has('bias') ? layer.add(y, layer.weight('bias')) : y;
  return adapted(layer, biased, [into], out, (a, b) =>
    isVector
      ? layer.reshape(layer.matmul(b, layer.matmul(a, layer.reshape(x, 0, -1, 1))), 0, 1, -1)
      : matmulTransposed(layer, lowRankLinear(layer, x, a, into), b, 3),
  );
}

/** x W, by whichever form the weight has. */
function product(layer: Module, x: Value, isVector: boolean): Value {
  const { int8, isTransposed } = layer.tensor('weight');
  if (int8 && layer.isSteady) return int8Product(layer, x, int8);
  const isTwice = isVector && layer.isSteady;
  const given = isTwice ? layer.concat([x, x], 1) : x;
  const y = isTransposed
    ? layer.matmul(given, layer.weight('weight'))
    : matmulTransposed(layer, given, layer.weight('weight'), 2);
  return isTwice ? firstToken(layer, y) : y;
}

function firstToken(m: Module, x: Value): Value {
  const [zero, one] = [m.integers([0]), m.integers([1])];
  return m.op('Slice', [x, zero, one, one]);
}

/** torch.nn.Conv2d, with its adapter: the first factor is a convolution of the same size to `rank` channels. */
export function conv(m: Module, x: Value, name: string, { stride = 1, pads }: ConvOptions = {}): Value {
  const layer = m.at(name);
  const [out, into, size] = layer.shape('weight', 4);
  const padding = pads ?? Array<number>(4).fill((size - 1) / 2);
  const weights = [layer.weight('weight'), ...(layer.has('bias') ? [layer.weight('bias')] : [])];
  const attributes = { kernel_shape: [size, size], strides: [stride, stride], pads: padding };
  const y = layer.op('Conv', [x, ...weights], attributes);
  return adapted(layer, y, [into, size, size], out, (a, b) => {
    const low = lowRankConv(layer, x, a, { stride, pads: padding });
    return layer.op('Reshape', [layer.matmul(b, low), layer.op('Shape', [y])]);
  });
}

/**
 * The sum of a layer and its adapter, whose factors are inputs with a row for each row of the batch: `lora_A` [rows,
 * rank, ...in] and `lora_B` [rows, out, rank], scaled; one row is for all. Rank 0 leaves the layer as it is.
 */
function adapted(layer: Module, y: Value, into: number[], out: number, delta: (a: Value, b: Value) => Value): Value {
  if (!layer.isAdapted) return y;
  const rank = `${layer.path}.rank`;
  const a = layer.input(`${layer.path}.lora_A`, ['adapters', rank, ...into]);
  const b = layer.input(`${layer.path}.lora_B`, ['adapters', out, rank]);
  return layer.whenFilled(
    a,
    () => layer.add(y, delta(a, b)),
    () => layer.op('Identity', [y]),
  );
}

/**
 * x A of each row, [rows, tokens, in] to [rows, tokens, rank]. ONNX Runtime shares the columns of one row's product
 * among the threads that the other rows leave, and sums in an order that depends on the columns of a thread. So a
 * steady product is made for `groupRank` columns at a time, which one thread has.
 */
function lowRankLinear(m: Module, x: Value, a: Value, into: number): Value {
  if (!m.isSteady) return matmulTransposed(m, x, a, 3);
  const tokens = m.op('Unsqueeze', [x, m.integers([1])]);
  const products = matmulTransposed(m, tokens, inGroups(m, a, groupsOf(m, a), into), 4);
  return m.reshape(m.transpose(products, 0, 2, 1, 3), 0, 0, -1);
}

/** Number of groups, as even as possible, that a rank has: one up to `groupRank`; a higher rank is a multiple of it. */
function groupsOf(m: Module, a: Value): Value {
  const rank = m.op('Shape', [a], { start: 1, end: 2 });
  return m.op('Div', [m.add(rank, m.integers([groupRank - 1])), m.integers([groupRank])]);
}

/** Factors in so many groups: [rows, groups, rank of a group, in]. */
function inGroups(m: Module, factors: Value, groups: Value, into: number): Value {
  return m.op('Reshape', [factors, m.concat([m.integers([0]), groups, m.integers([-1, into])], 0)]);
}

/**
 * The convolution of each row by a layer with its own kernel [rows, rank, in, size, size], to [rows, rank, pixels]. No operator
 * does that, so it is a product to `rank` channels for each place of the kernel, and their sum at the places' offsets.
 */
function lowRankConv(
  m: Module,
  x: Value,
  kernels: Value,
  { stride, pads: [top, left, bottom, right] }: Required<ConvOptions>,
): Value {
  const [, into, size] = m.shape('weight', 4);
  const places = size * size;
  // [rows, places, rank, in]
  const factors = m.transpose(m.reshape(kernels, 0, 0, into, places), 0, 3, 1, 2);
  const products = m.isSteady
    ? steadyProducts(m, x, factors, m.mul(groupsOf(m, kernels), m.integers([places])), into)
    : m.matmul(m.reshape(factors, 0, -1, into), m.reshape(x, 0, into, -1));
  if (places === 1 && stride === 1) return products;
  const sizes = m.op('Shape', [x], { start: 2 });
  const planes = m.op('Reshape', [products, m.concat([m.integers([0, places, -1]), sizes], 0)]);
  const padded = m.op('Pad', [planes, m.integers([0, 0, 0, top, left, 0, 0, 0, bottom, right])]);
  // Parted first: the gradients of nine slices of the whole would each be as large as the whole.
  const ones = m.integers(Array<number>(places).fill(1));
  const planesOf = m.ops('Split', places, [padded, ones], { axis: 1 });
  const [axes, steps] = [m.integers([3, 4]), m.integers([stride, stride])];
  const parts = planesOf.map((plane, place) => {
    const begin = [Math.floor(place / size), place % size];
    const end = begin.map((at) => (at + 1 === size ? 2 ** 31 : at + 1 - size));
    return m.op('Slice', [plane, m.integers(begin), m.integers(end), axes, steps]);
  });
  const sum = parts.reduce((all, part) => m.add(all, part));
  return m.reshape(m.op('Squeeze', [sum, m.integers([1])]), 0, 0, -1);
}

/** Factors times a picture, [rows, in, height, width] to [rows, places * rank, pixels], as `lowRankLinear` has them. */
function steadyProducts(m: Module, x: Value, factors: Value, groups: Value, into: number): Value {
  const both = { transA: 1, transB: 1 };
  const inputs = [m.reshape(x, 0, 1, into, -1), inGroups(m, factors, groups, into)];
  // [rows, groups, pixels, rank of a group]
  const products = m.op('FusedMatMul', inputs, both, microsoft);
  const pixels = m.op('Shape', [products], { start: 2, end: 3 });
  const columns = m.transpose(products, 0, 1, 3, 2);
  return m.op('Reshape', [columns, m.concat([m.integers([0, -1]), pixels], 0)]);
}
