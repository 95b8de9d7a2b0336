import {
  type Attribute,
  emptyGraph,
  type Graph,
  type Initializer,
  type Node,
  type Value,
  type ValueInfo,
  widensWeight,
} from './graph';
import { GraphBuilder, microsoft } from './graph-builder';
import { countOf } from '../weights/named-tensor';
import { axisOf, inferences, type Sized, UnknownOperatorError } from './shapes';

type Attributes = Record<string, Attribute>;

/** A graph of fixed sizes, to which nodes are added: the shape of each value is known as soon as it is there. */
export class SizedGraph extends GraphBuilder {
  readonly graph: Graph = emptyGraph();
  private readonly sizes = new Map<Value, Sized>();
  private count = 0;

  /** @param mayCopyWeights whether weights may be held once more in another order, in which they are read faster */
  constructor(readonly mayCopyWeights = true) {
    super();
  }

  /**
   * Adds a graph with sizes for its inputs: branches are decided, shape arithmetic becomes constants, and
   * normalisations give their mean and inverse deviation, which their gradients need. A value that is there already is
   * no input.
   * @param shapeOf the sizes of an input; an adapter's leading axis is 1, so that all rows share it
   * @param prefix of all its names, so that several graphs have a place
   */
  include(source: Graph, shapeOf: (input: ValueInfo) => readonly number[], prefix = ''): void {
    for (const [name, initializer] of source.initializers) this.initialize(prefix + name, initializer);
    for (const input of source.inputs)
      if (!this.sizes.has(prefix + input.name)) this.input(prefix + input.name, shapeOf(input), input.type);
    for (const node of source.nodes) this.take(node, prefix);
  }

  has(value: Value): boolean {
    return this.sizes.has(value);
  }

  shape(value: Value): readonly number[] {
    return this.sized(value).shape;
  }

  /** Of what follows from shapes and constants alone. */
  sized(value: Value): Sized {
    const found = this.sizes.get(value);
    if (!found) throw new RangeError(`${value} is not in the graph.`);
    return found;
  }

  input(name: Value, shape: readonly number[], type: ValueInfo['type'] = 'float32'): Value {
    this.graph.inputs.push({ name, type, shape });
    this.sizes.set(name, { shape });
    return name;
  }

  /**
   * All numbers of a value in one row. ONNX Runtime computes nodes in the order of a depth-first search that begins at
   * the last node. It drops an `Identity`, and with it a place in this order; a change of shape stays, and costs
   * nothing.
   */
  output(name: Value, value: Value): void {
    this.op('Reshape', [value, this.integers([countOf(this.shape(value)), 1])], {}, '', name);
    this.graph.outputs.push({ name, type: 'float32', shape: this.shape(name) });
  }

  /** Adds a node, unless its values are known already. */
  push(node: Node): void {
    const infer = inferences[node.opType];
    if (!infer) throw new UnknownOperatorError(node, 'shapes');
    const results = infer(
      node,
      node.inputs.map((name) => (name === '' ? (undefined as never) : this.sized(name))),
    );
    for (const [i, name] of node.outputs.entries()) this.sizes.set(name, results[i]);
    if (results.every(({ values }) => values)) return;
    for (const name of node.inputs) this.materialize(name);
    this.graph.nodes.push(node);
  }

  op(
    opType: string,
    inputs: readonly Value[],
    attributes: Attributes = {},
    domain = '',
    name = `gradient#${this.count++}/${opType}`,
  ): Value {
    this.push({ name, opType, domain, inputs, outputs: [name], attributes });
    return name;
  }

  sub = (x: Value, y: Value): Value => this.op('Sub', [x, y]);
  scale = (x: Value, factor: number): Value => (factor === 1 ? x : this.mul(x, this.number(factor)));
  sum = (x: Value, axes: readonly number[]): Value => this.op('ReduceSum', [x, this.integers(axes)], { keepdims: 1 });
  mean = (x: Value, axes: readonly number[]): Value => this.op('ReduceMean', [x, this.integers(axes)], { keepdims: 1 });

  override concat(values: readonly Value[], axis: number): Value {
    return values.length === 1 ? values[0] : super.concat(values, axis);
  }

  override reshape(x: Value, ...shape: number[]): Value {
    return this.shape(x).join() === shape.join() ? x : super.reshape(x, ...shape);
  }

  slice(x: Value, axis: number, begin: number, end: number): Value {
    if (begin === 0 && end === this.shape(x)[axis]) return x;
    return this.op('Slice', [x, this.integers([begin]), this.integers([end]), this.integers([axis])]);
  }

  /** `scale` times x @ y, either of them transposed along its last two axes: without a transposed copy of a weight. */
  product(x: Value, y: Value, { transA = false, transB = false, scale = 1 } = {}): Value {
    if (!transA && !transB && scale === 1) return this.op('MatMul', [x, y]);
    return this.op('FusedMatMul', [x, y], { transA: Number(transA), transB: Number(transB), alpha: scale }, microsoft);
  }

  /** Sums over the axes along which a value of this shape was repeated. */
  reduceTo(gradient: Value, shape: readonly number[]): Value {
    const from = this.shape(gradient);
    const lead = from.length - shape.length;
    const axes = from.flatMap((length, axis) =>
      axis < lead || (shape[axis - lead] === 1 && length !== 1) ? [axis] : [],
    );
    return this.reshape(axes.length > 0 ? this.sum(gradient, axes) : gradient, ...shape);
  }

  floats(name: string, values: ArrayLike<number>, shape?: readonly number[]): Value {
    return this.exactly(name, values, shape);
  }

  /** The graph without what no output needs. */
  finish(): Graph {
    const { nodes, initializers, inputs, outputs } = this.graph;
    const needed = new Set(outputs.map(({ name }) => name));
    const kept: Node[] = [];
    for (const node of nodes.toReversed()) {
      if (!node.outputs.some((name) => needed.has(name))) continue;
      kept.push(node);
      for (const name of node.inputs) needed.add(name);
    }
    kept.reverse();
    // A weight is widened just before it is used if the node that does it stands before all others.
    const isFirst = (node: Node): boolean => widensWeight(node, this.graph);
    return {
      nodes: [...kept.filter(isFirst), ...kept.filter((node) => !isFirst(node))],
      initializers: new Map([...initializers].filter(([name]) => needed.has(name))),
      inputs: inputs.filter(({ name }) => needed.has(name)),
      outputs,
    };
  }

  private take(source: Node, prefix: string): void {
    const named = (names: readonly Value[]): Value[] => names.map((name) => (name === '' ? name : prefix + name));
    const { name, inputs, outputs } = source;
    const node = { ...source, name: prefix + name, inputs: named(inputs), outputs: named(outputs) };
    if (node.opType === 'If') {
      const [isFilled] = this.sized(node.inputs[0]).values!;
      const branch = node.attributes[isFilled ? 'then_branch' : 'else_branch'] as Graph;
      for (const inner of branch.nodes) this.take(inner, prefix);
      this.push({ ...node, opType: 'Identity', inputs: named([branch.outputs[0].name]), attributes: {} });
    } else if (node.opType === 'InstanceNormalization') this.push(this.ofGroups(node));
    else if (node.opType === 'LayerNormalization') this.push(withStatistics(node));
    else if (node.opType === 'SimplifiedLayerNormalization') this.push(withStatistics(node, ['deviation']));
    else this.push(node);
  }

  /** Normalisation of [rows, groups, length], whose own scale and shift are 1 and 0 in our graphs. */
  private ofGroups({ name, inputs: [x], outputs, attributes }: Node): Node {
    const { shape } = this.sized(x);
    const [length] = shape.slice(axisOf(-1, shape));
    const ones = `ones(${length})`;
    if (!this.sizes.has(ones)) this.op('Expand', [this.number(1), this.integers([length])], {}, '', ones);
    const epsilon = attributes.epsilon;
    return withStatistics({
      ...{ name, opType: 'LayerNormalization', domain: '', inputs: [x, ones], outputs },
      attributes: { axis: 2, epsilon },
    });
  }

  private initialize(name: Value, initializer: Initializer): void {
    this.graph.initializers.set(name, initializer);
    const { shape } = initializer;
    // A transposed matrix is one of the other order for all nodes.
    const stored = 'file' in initializer && initializer.isTransposed ? shape.toReversed() : shape;
    this.sizes.set(name, { shape: stored, ...('bytes' in initializer && valuesOf(initializer)) });
  }

  protected constant(name: Value, initializer: Exclude<Initializer, { file: string }>): Value {
    if (!this.sizes.has(name)) this.initialize(name, initializer);
    return name;
  }

  /** Makes what follows from shapes a constant, once a node needs it. */
  private materialize(name: Value): void {
    const known = this.sizes.get(name);
    if (!known?.values || this.graph.initializers.has(name)) return;
    const bytes = Buffer.from(BigInt64Array.from(known.values, BigInt).buffer);
    this.graph.initializers.set(name, { type: 'int64', shape: known.shape, bytes });
  }
}

/** Largest constant whose values matter: sizes, axes and scales. */
const mostKnown = 16;

function valuesOf({ type, shape, bytes }: Exclude<Initializer, { file: string }>): Partial<Sized> {
  if (countOf(shape) > mostKnown) return {};
  const copy = new Uint8Array(bytes).buffer;
  if (type === 'int64') return { values: Array.from(new BigInt64Array(copy), Number) };
  return type === 'float32' ? { numbers: [...new Float32Array(copy)] } : {};
}

const withStatistics = (node: Node, names: readonly string[] = ['mean', 'deviation']): Node => {
  const [y] = node.outputs;
  return { ...node, outputs: [y, ...names.map((name) => `${y}:${name}`)] };
};
