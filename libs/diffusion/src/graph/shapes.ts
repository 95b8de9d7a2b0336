import type { Node } from './graph';
import { countOf } from '../weights/named-tensor';

/** The shape of a value, known before anything is computed. */
export interface Sized {
  shape: readonly number[];
  /** Of what follows from shapes and constants alone. */
  values?: readonly number[];
  /** Of short constants in float32. */
  numbers?: readonly number[];
}

type Infer = (node: Node, inputs: readonly Sized[]) => Sized[];

/** An operator that no table here knows; the message names it. */
export class UnknownOperatorError extends Error {
  override name = 'UnknownOperatorError';

  constructor({ opType, name }: Node, missing: string) {
    super(`There is no rule for the ${missing} of the operator ${opType} (${name}).`);
  }
}

export const intOf = ({ attributes }: Node, name: string, usual = 0): number => (attributes[name] as number) ?? usual;
export const intsOf = ({ attributes }: Node, name: string): readonly number[] => attributes[name] as readonly number[];
/** An axis that may be counted from the end. */
export const axisOf = (axis: number, { length }: readonly unknown[]): number => (axis + length) % length;

const one = (shape: readonly number[], values?: readonly number[]): Sized[] => [{ shape, ...(values && { values }) }];
const same: Infer = (_, [{ shape, values }]) => one(shape, values);

export function broadcast(shapes: readonly (readonly number[])[]): number[] {
  const length = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length }, (_, axis) =>
    Math.max(...shapes.map((shape) => shape[axis - length + shape.length] ?? 1)),
  );
}

const elementwise: Infer = (_, inputs) => one(broadcast(inputs.map(({ shape }) => shape)));

/** Of lengths too, which stay known. */
const arithmetic =
  (compute: (x: number, y: number) => number): Infer =>
  (node, inputs) => {
    const [{ shape }] = elementwise(node, inputs);
    const [x, y] = inputs.map(({ values }) => values);
    if (!x || !y) return one(shape);
    const at = (values: readonly number[], i: number): number => values[values.length === 1 ? 0 : i];
    const known = Array.from({ length: countOf(shape) }, (_, i) => compute(at(x, i), at(y, i)));
    return one(shape, known);
  };

const product: Infer = (node, [x, y]) => {
  const [rows, columns] = [x.shape.at(intOf(node, 'transA') ? -1 : -2)!, y.shape.at(intOf(node, 'transB') ? -2 : -1)!];
  return one([...broadcast([x.shape.slice(0, -2), y.shape.slice(0, -2)]), rows, columns]);
};

const convolution: Infer = (node, [x, w]) => {
  const [pads, strides] = [intsOf(node, 'pads'), intsOf(node, 'strides')];
  const edge = (axis: number): number =>
    Math.floor((x.shape[axis + 2] + pads[axis] + pads[axis + 2] - w.shape[axis + 2]) / strides[axis]) + 1;
  return one([x.shape[0], w.shape[0], edge(0), edge(1)]);
};

const transposedConvolution: Infer = (node, [x, w]) => {
  const [pads, strides, extra] = ['pads', 'strides', 'output_padding'].map((name) => intsOf(node, name));
  const edge = (axis: number): number =>
    (x.shape[axis + 2] - 1) * strides[axis] + w.shape[axis + 2] - pads[axis] - pads[axis + 2] + extra[axis];
  return one([x.shape[0], w.shape[1], edge(0), edge(1)]);
};

const reduction: Infer = (node, [{ shape }, axes]) => {
  const gone = new Set(axes.values!.map((axis) => axisOf(axis, shape)));
  const keeps = intOf(node, 'keepdims', 1);
  return one(shape.flatMap((length, axis) => (gone.has(axis) ? (keeps ? [1] : []) : [length])));
};

const reshape: Infer = (_, [x, to]) => {
  const shape = to.values!.map((length, axis) => (length === 0 ? x.shape[axis] : length));
  const known = countOf(shape.filter((length) => length !== -1));
  return one(
    shape.map((length) => (length === -1 ? countOf(x.shape) / known : length)),
    x.values,
  );
};

/** Begin, end and step of each axis that a node slices. */
export function slicesOf([x, starts, ends, axes, steps]: readonly (Sized | undefined)[]) {
  const shape = x!.shape;
  const list = axes?.values ?? starts!.values!.map((_, axis) => axis);
  return new Map(
    list.map((at, i) => {
      const axis = axisOf(at, shape);
      const place = (value: number): number => Math.min(shape[axis], value < 0 ? value + shape[axis] : value);
      const [begin, end, step] = [place(starts!.values![i]), place(ends!.values![i]), steps?.values?.[i] ?? 1];
      return [axis, { begin, end, step, count: Math.max(0, Math.ceil((end - begin) / step)) }] as const;
    }),
  );
}

const slice: Infer = (_, inputs) => {
  const [{ shape, values }] = inputs;
  const slices = slicesOf(inputs);
  const own = slices.get(0);
  return one(
    shape.map((length, axis) => slices.get(axis)?.count ?? length),
    shape.length === 1 && own ? values?.slice(own.begin, own.end) : undefined,
  );
};

const concat: Infer = (node, inputs) => {
  const axis = axisOf(intOf(node, 'axis'), inputs[0].shape);
  const total = inputs.reduce((sum, { shape }) => sum + shape[axis], 0);
  const values = inputs.every((each) => each.values) ? inputs.flatMap((each) => each.values!) : undefined;
  return one(inputs[0].shape.with(axis, total), values);
};

const resize: Infer = (_, [{ shape }, , scales, sizes]) =>
  one(sizes?.values ?? shape.map((length, axis) => Math.floor(length * scales.numbers![axis])));

const normalisation: Infer = (node, [{ shape }]) => {
  const axis = axisOf(intOf(node, 'axis', -1), shape);
  const statistics = shape.map((length, at) => (at < axis ? length : 1));
  return node.outputs.map((_name, i) => ({ shape: i === 0 ? shape : statistics }));
};

const attention: Infer = (_, [query, , value]) => one(query.shape.with(-1, value.shape.at(-1)!));

/** The shapes that each operator of our graphs gives. */
export const inferences: Readonly<Record<string, Infer>> = {
  ...Object.fromEntries(
    ['Identity', 'Cast', 'QuickGelu', 'Gelu', 'Sigmoid', 'Tanh', 'Erf', 'Exp', 'Neg', 'Softmax', 'Sin', 'Cos'].map(
      (name) => [name, same],
    ),
  ),
  ...Object.fromEntries(['Less', 'Greater', 'Equal', 'Where'].map((name) => [name, elementwise])),
  Add: arithmetic((x, y) => x + y),
  Sub: arithmetic((x, y) => x - y),
  Mul: arithmetic((x, y) => x * y),
  MatMul: product,
  FusedMatMul: product,
  MultiHeadAttention: attention,
  Conv: convolution,
  ConvTranspose: transposedConvolution,
  AveragePool: (node, [{ shape }]) =>
    one(shape.map((length, axis) => (axis < 2 ? length : length / intsOf(node, 'strides')[axis - 2]))),
  LayerNormalization: normalisation,
  SimplifiedLayerNormalization: normalisation,
  RotaryEmbedding: same,
  InstanceNormalization: same,
  ReduceSum: reduction,
  ReduceMean: reduction,
  Reshape: reshape,
  Slice: slice,
  Concat: concat,
  Resize: resize,
  Transpose: (node, [{ shape }]) => one(intsOf(node, 'perm').map((axis) => shape[axis])),
  Expand: (_, [{ shape }, to]) => one(broadcast([shape, to.values!])),
  Pad: (_, [{ shape }, { values: pads }]) =>
    one(shape.map((length, axis) => length + pads![axis] + pads![axis + shape.length])),
  Split: (node, [{ shape }, sizes]) =>
    sizes.values!.map((length) => ({ shape: shape.with(axisOf(intOf(node, 'axis'), shape), length) })),
  Unsqueeze: (_, [{ shape, values }, axes]) => {
    const longer = [...shape];
    for (const axis of axes.values!) longer.splice(axis, 0, 1);
    return one(longer, values);
  },
  Squeeze: (_, [{ shape, values }, axes]) =>
    one(
      shape.filter((_length, axis) => !axes.values!.includes(axis)),
      values,
    ),
  Shape: (node, [{ shape }]) => {
    const values = shape.slice(intOf(node, 'start'), intOf(node, 'end', shape.length));
    return one([values.length], values);
  },
  Size: (_, [{ shape }]) => one([], [countOf(shape)]),
  Gather: (node, [{ shape }, at]) => {
    const axis = axisOf(intOf(node, 'axis'), shape);
    return one([...shape.slice(0, axis), ...at.shape, ...shape.slice(axis + 1)]);
  },
  GatherND: (_, [{ shape }]) => one([shape[0], ...shape.slice(2)]),
  ArgMax: (node, [{ shape }]) => one(shape.filter((_length, axis) => axis !== intOf(node, 'axis'))),
};
