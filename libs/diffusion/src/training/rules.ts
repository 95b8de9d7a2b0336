import type { Node, Value } from '../graph/graph';
import { countOf } from '../weights/named-tensor';
import { attentionGradients } from './attention-rule';
import { axisOf, intOf, intsOf, slicesOf, UnknownOperatorError } from '../graph/shapes';
import type { SizedGraph } from '../graph/sized-graph';
import type { Rule, RuleContext } from './rule-context';

/** A rule of a node with one output, one input, and its gradient. */
const unary =
  (rule: (graph: SizedGraph, g: Value, x: Value, node: Node) => Value): Rule =>
  ({ graph, node, gradients: [g], read }) => [rule(graph, g!, read(node.inputs[0]), node)];

/** A rule that needs no value of the forward pass. */
const linear =
  (rule: (graph: SizedGraph, g: Value, node: Node, shape: readonly number[]) => Value): Rule =>
  ({ graph, node, gradients: [g] }) => [rule(graph, g!, node, graph.shape(node.inputs[0]))];

const reshaped = linear((graph, g, _, shape) => graph.reshape(g, ...shape));

/** Of inputs that may have been repeated along some axes. */
const repeated =
  (...rules: ((context: RuleContext, g: Value) => Value)[]): Rule =>
  (context) =>
    rules.map((rule, i) => {
      const { graph, node, gradients, wants } = context;
      return wants(i) ? graph.reduceTo(rule(context, gradients[0]!), graph.shape(node.inputs[i])) : undefined;
    });

const itself = (_: RuleContext, g: Value): Value => g;

/** Reverse mode: for each operator of our graphs that lies between an adapter and the prediction, its rule. */
export const rules: Readonly<Record<string, Rule>> = {
  Identity: ({ gradients }) => gradients,
  Add: repeated(itself, itself),
  Sub: repeated(itself, ({ graph }, g) => graph.scale(g, -1)),
  Mul: repeated(
    ({ graph, node, read }, g) => graph.mul(g, read(node.inputs[1])),
    ({ graph, node, read }, g) => graph.mul(g, read(node.inputs[0])),
  ),
  Where: ({ graph, node, gradients: [g], read, wants }) => {
    const [condition, zero] = [read(node.inputs[0]), graph.number(0)];
    const chosen = (x: Value, y: Value, i: number): Value =>
      graph.reduceTo(graph.op('Where', [condition, x, y]), graph.shape(node.inputs[i]));
    return [undefined, wants(1) ? chosen(g!, zero, 1) : undefined, wants(2) ? chosen(zero, g!, 2) : undefined];
  },
  Reshape: reshaped,
  Unsqueeze: reshaped,
  Squeeze: reshaped,
  Transpose: linear((graph, g, node) => {
    const perm = intsOf(node, 'perm');
    return graph.transpose(g, ...perm.map((_, axis) => perm.indexOf(axis)));
  }),
  Concat: ({ graph, node, gradients: [g], wants }) => {
    const axis = axisOf(intOf(node, 'axis'), graph.shape(g!));
    let end = 0;
    return node.inputs.map((input, i) => {
      const begin = end;
      end += graph.shape(input)[axis];
      return wants(i) ? graph.slice(g!, axis, begin, end) : undefined;
    });
  },
  Split: ({ graph, node, gradients }) => {
    const zeros = (shape: readonly number[]): Value => graph.op('Expand', [graph.number(0), graph.integers(shape)]);
    const parts = node.outputs.map((output, i) => gradients[i] ?? zeros(graph.shape(output)));
    return [graph.concat(parts, intOf(node, 'axis'))];
  },
  Slice: linear((graph, g, node, shape) => {
    const slices = slicesOf(node.inputs.map((input) => graph.sized(input)));
    if ([...slices.values()].some(({ step }) => step !== 1))
      throw new UnknownOperatorError(node, 'gradient with steps');
    const before = shape.map((_, axis) => slices.get(axis)?.begin ?? 0);
    const after = shape.map((length, axis) => (slices.has(axis) ? length - slices.get(axis)!.end : 0));
    return graph.op('Pad', [g, graph.integers([...before, ...after])]);
  }),
  // The gradient loses the margin that was added.
  Pad: linear((graph, g, node) =>
    graph.op('Pad', [g, graph.integers(graph.sized(node.inputs[1]).values!.map((length) => -length))]),
  ),
  // Rows of a table: each row of the gradient is added to the one that it came from.
  Gather: ({ graph, node, gradients: [g], read }) => {
    const [table, places] = node.inputs;
    const [rows, ...rest] = graph.shape(table);
    if (intOf(node, 'axis') !== 0) throw new UnknownOperatorError(node, 'gradient along other axes');
    const count = countOf(graph.shape(places));
    const isFrom = chosenPlaces(graph, graph.reshape(read(places), 1, count), [rows, 1]);
    const sums = graph.product(isFrom, graph.reshape(g!, count, countOf(rest)));
    return [graph.reshape(sums, rows, ...rest)];
  },
  // One token of each text.
  GatherND: ({ graph, node, gradients: [g], read }) => {
    const [rows, tokens, width] = graph.shape(node.inputs[0]);
    const isTaken = chosenPlaces(graph, read(node.inputs[1]), [1, tokens]);
    return [graph.mul(graph.reshape(isTaken, rows, tokens, 1), graph.reshape(g!, rows, 1, width))];
  },
  // To the nearest pixel: each gives its value to a block of pixels, whose gradients are added up.
  Resize: linear((graph, g, node, [, , height, width]) => {
    const [, , rows, columns] = graph.shape(g);
    const block = [rows / height, columns / width];
    if (!block.every(Number.isInteger)) throw new UnknownOperatorError(node, 'gradient between these sizes');
    return graph.scale(graph.op('AveragePool', [g], { kernel_shape: block, strides: block }), block[0] * block[1]);
  }),
  // y = x s(ax), and so dy/dx = s (1 + ax (1 - s)) with s = s(ax).
  QuickGelu: unary((graph, g, x, node) => {
    const scaled = graph.scale(x, intOf(node, 'alpha', 1));
    const s = graph.op('Sigmoid', [scaled]);
    const inner = graph.add(graph.mul(scaled, graph.sub(graph.number(1), s)), graph.number(1));
    return graph.mul(g, graph.mul(s, inner));
  }),
  // y = x P(x), and so dy/dx = P(x) + x p(x), with the normal distribution and its density.
  Gelu: unary((graph, g, x) => {
    const distribution = graph.add(
      graph.scale(graph.op('Erf', [graph.scale(x, Math.SQRT1_2)]), 0.5),
      graph.number(0.5),
    );
    const exponential = graph.op('Exp', [graph.scale(graph.mul(x, x), -0.5)]);
    const density = graph.mul(x, graph.scale(exponential, 1 / Math.sqrt(2 * Math.PI)));
    return graph.mul(g, graph.add(distribution, density));
  }),
  // dy/dx = 1 - y y.
  Tanh: ({ graph, node, gradients: [g], read }) => {
    const y = read(node.outputs[0]);
    return [graph.mul(g!, graph.sub(graph.number(1), graph.mul(y, y)))];
  },
  // With u = g w: (u - mean(u) - h mean(u h)) / deviation, h being the normalised value.
  LayerNormalization: ({ graph, node, gradients: [g], read }) => {
    const [x, weight] = node.inputs;
    const [y, mean, inverse] = node.outputs;
    const { length } = graph.shape(x);
    const first = axisOf(intOf(node, 'axis', -1), graph.shape(x));
    const axes = Array.from({ length: length - first }, (_, i) => first + i);
    const isPlain = weight.startsWith('ones(');
    const hat = isPlain ? read(y) : graph.mul(graph.sub(read(x), read(mean)), read(inverse));
    const u = isPlain ? g! : graph.mul(g!, weight);
    const means = graph.add(graph.mul(hat, graph.mean(graph.mul(u, hat), axes)), graph.mean(u, axes));
    return [graph.mul(graph.sub(u, means), read(inverse))];
  },
  // The same where no mean is taken away.
  SimplifiedLayerNormalization: ({ graph, node, gradients: [g], read }) => {
    const [x, weight] = node.inputs;
    const inverse = read(node.outputs[1]);
    const [hat, u] = [graph.mul(read(x), inverse), graph.mul(g!, weight)];
    const mean = graph.mul(hat, graph.mean(graph.mul(u, hat), [graph.shape(x).length - 1]));
    return [graph.mul(graph.sub(u, mean), inverse)];
  },
  // Turned back by the same angles.
  RotaryEmbedding: ({ graph, node: { inputs, attributes, domain }, gradients: [g] }) => {
    const [, positions, cos, sin] = inputs;
    return [graph.op('RotaryEmbedding', [g!, positions, cos, graph.op('Neg', [sin])], attributes, domain)];
  },
  MatMul: (context) => productGradients(context, false),
  FusedMatMul: (context) => productGradients(context, intOf(context.node, 'transB') === 1),
  MultiHeadAttention: attentionGradients,
  // Its kernel is a weight of the model, which is not trained.
  Conv: ({ graph, node, gradients: [g], read }) => {
    const [shape, kernel] = node.inputs.map((input) => graph.shape(input));
    const weight = read(node.inputs[1]);
    const [pads, strides] = [intsOf(node, 'pads'), intsOf(node, 'strides')];
    if (graph.mayCopyWeights && strides.every((stride) => stride === 1))
      return [turnedConvolution(graph, g!, node, weight)];
    const extra = [0, 1].map((axis) => {
      const covered = (graph.shape(g!)[axis + 2] - 1) * strides[axis] + kernel[axis + 2];
      return shape[axis + 2] - covered + pads[axis] + pads[axis + 2];
    });
    const attributes = { pads, strides, kernel_shape: kernel.slice(2), output_padding: extra };
    return [graph.op('ConvTranspose', [g!, weight], attributes)];
  },
};

/** 1 where a place is the number of a row or column, else 0. @param shape of those: one axis is 1 */
function chosenPlaces(graph: SizedGraph, places: Value, shape: readonly number[]): Value {
  const numbers = graph.integers(Array.from({ length: countOf(shape) }, (_, i) => i));
  const isThere = graph.op('Equal', [graph.reshape(numbers, ...shape), places]);
  return graph.op('Where', [isThere, graph.number(1), graph.number(0)]);
}

/** The gradient of a convolution as one with the kernel turned around, which ONNX Runtime turns once and keeps. */
function turnedConvolution(graph: SizedGraph, g: Value, node: Node, weight: Value): Value {
  const [out, into, height, width] = graph.shape(weight);
  const places = graph.integers(Array.from({ length: height * width }, (_, place) => height * width - 1 - place));
  const turned = graph.op('Gather', [graph.reshape(weight, out, into, height * width), places], { axis: 2 });
  const kernel = graph.transpose(graph.reshape(turned, out, into, height, width), 1, 0, 2, 3);
  const pads = intsOf(node, 'pads').map((pad, side) => [height, width][side % 2] - 1 - pad);
  return graph.op('Conv', [g, kernel], { pads, strides: [1, 1], kernel_shape: [height, width] });
}

/** Of x @ y: g @ y^T and x^T @ g. @param isTransposed whether it is x @ y^T */
function productGradients({ graph, node, gradients, read, wants }: RuleContext, isTransposed: boolean): Value[] {
  const [x, y] = node.inputs;
  const g = gradients[0]!;
  const shapes = { x: graph.shape(x), y: graph.shape(y), g: graph.shape(g) };
  const ofX = (): Value => graph.reduceTo(graph.product(g, read(y), { transB: !isTransposed }), shapes.x);
  const ofY = (): Value => {
    const isShared = countOf(shapes.y.slice(0, -2)) === 1 && countOf(shapes.g.slice(0, -2)) > 1;
    const isFull = countOf(shapes.x.slice(0, -2)) === countOf(shapes.g.slice(0, -2));
    // One product of all rows at once, where they share the second factor.
    const flat = (value: Value, shape: readonly number[]): Value =>
      isShared && isFull ? graph.reshape(value, countOf(shape.slice(0, -1)), shape.at(-1)!) : value;
    const [left, right] = [flat(read(x), shapes.x), flat(g, shapes.g)];
    const [a, b] = isTransposed ? [right, left] : [left, right];
    return graph.reduceTo(graph.product(a, b, { transA: true }), shapes.y);
  };
  return [wants(0) ? ofX() : undefined, wants(1) ? ofY() : undefined] as Value[];
}
