import { countOf, tensorTypes, WeightsFileError } from '../weights/named-tensor';
import type { NamedTensor, NamedTensors } from '../weights/named-tensor';
import { dataTypes, emptyGraph } from './graph';
import type { Attribute, DataType, Graph, Node, Value } from './graph';

export interface ModuleOptions {
  tensors: NamedTensors;
  /** Whether the layer at a path takes an adapter; by default none does. */
  isAdapted?: (path: string) => boolean;
  /** Type to compute in; inputs and outputs are float32 in any case. */
  precision?: 'float32' | 'float16';
}

/** Settings of a convolution; by default its size stays the same. */
interface ConvOptions {
  stride?: number;
  /** Rows and columns of zeros at top, left, bottom and right. */
  pads?: readonly number[];
}

/** What the modules of one graph share. */
interface GraphState extends Required<ModuleOptions> {
  graph: Graph;
  /** Where new nodes go: those of the graph, or of the branch that is being written. */
  nodes: Node[];
  /** Weights brought to the type that is computed in; they come before all other nodes. */
  casts: Map<Value, Node>;
  /** Paths of all modules with weights. */
  paths: Set<string>;
  used: Set<string>;
  names: Map<string, number>;
}

const microsoft = 'com.microsoft';

/**
 * A module of a model, as PyTorch knows it: a path, and the weights below it. Its methods add nodes to the model's
 * graph, named by the path of the layer that they are of.
 */
export class Module {
  private constructor(
    private readonly state: GraphState,
    readonly path: string,
  ) {}

  /** The module of a whole model, with an empty graph. */
  static of({ tensors, isAdapted = () => false, precision = 'float32' }: ModuleOptions): Module {
    const graph = emptyGraph();
    const paths = new Set<string>();
    for (const name of tensors.keys())
      for (let end = name.length; end > 0; end = name.lastIndexOf('.', end - 1)) paths.add(name.slice(0, end));
    const own = { graph, nodes: graph.nodes, casts: new Map<Value, Node>(), paths };
    return new Module({ tensors, isAdapted, precision, ...own, used: new Set(), names: new Map() }, '');
  }

  /** The module below this one: `at('down_blocks', 0)`. */
  at(...names: (string | number)[]): Module {
    return new Module(this.state, [...(this.path ? [this.path] : []), ...names].join('.'));
  }

  /** Whether there are weights with this name or below it. */
  has(...names: (string | number)[]): boolean {
    return this.state.paths.has(this.at(...names).path);
  }

  /** The modules `name.0`, `name.1` and so on. */
  list(name: string): Module[] {
    const found: Module[] = [];
    while (this.has(name, found.length)) found.push(this.at(name, found.length));
    return found;
  }

  /** The names of all weights of the model. */
  weightNames = (): string[] => [...this.state.tensors.keys()];

  /** The shape of a weight. @throws WeightsFileError if there is none of this name */
  shape(name: string): readonly number[] {
    return this.tensor(name).shape;
  }

  /** The graph, once all nodes are there, and the names of weights that it has not used. */
  finish(): { graph: Graph; unused: string[] } {
    const { graph, casts, tensors, used } = this.state;
    return {
      graph: { ...graph, nodes: [...casts.values(), ...graph.nodes] },
      unused: [...tensors.keys()].filter((name) => !used.has(name)),
    };
  }

  /**
   * An input of the graph, which is float32 or of integers.
   * @param isExact whether it is not rounded to half precision where that is computed in
   */
  input(name: string, shape: readonly (number | string)[], type: DataType = 'float32', isExact = false): Value {
    this.state.graph.inputs.push({ name, type, shape });
    return isExact || type !== 'float32' ? name : this.inPrecision(name);
  }

  output(name: string, value: Value, shape: readonly (number | string)[]): void {
    this.state.graph.outputs.push({ name, type: 'float32', shape });
    const isHalf = this.state.precision === 'float16';
    this.push(isHalf ? 'Cast' : 'Identity', [value], [name], isHalf ? { to: dataTypes.float32 } : {});
  }

  /** Adds a node with one output. */
  op(opType: string, inputs: readonly Value[], attributes: Record<string, Attribute> = {}, domain = ''): Value {
    return this.ops(opType, 1, inputs, attributes, domain)[0];
  }

  /** Adds a node with several outputs. */
  ops(
    opType: string,
    count: number,
    inputs: readonly Value[],
    attributes: Record<string, Attribute> = {},
    domain = '',
  ): Value[] {
    const name = this.unique(`${this.path}/${opType}`);
    const outputs = Array.from({ length: count }, (_, i) => (i === 0 ? name : `${name}:${i}`));
    return this.push(opType, inputs, outputs, attributes, domain);
  }

  add = (x: Value, y: Value): Value => this.op('Add', [x, y]);
  mul = (x: Value, y: Value): Value => this.op('Mul', [x, y]);
  concat = (values: readonly Value[], axis: number): Value => this.op('Concat', values, { axis });
  transpose = (x: Value, ...perm: number[]): Value => this.op('Transpose', [x], { perm });
  /** 0 keeps a length, -1 is what remains. */
  reshape = (x: Value, ...shape: number[]): Value => this.op('Reshape', [x, this.integers(shape)]);
  /** A float32 value in the type that is computed in. */
  inPrecision = (x: Value): Value => (this.state.precision === 'float32' ? x : this.cast(x));
  cast = (x: Value, type: DataType = this.state.precision): Value => this.op('Cast', [x], { to: dataTypes[type] });
  silu = (x: Value): Value => this.op('QuickGelu', [x], { alpha: 1 }, microsoft);
  gelu = (x: Value): Value => this.op('Gelu', [x], {}, microsoft);
  /** x @ y, or x @ y transposed. */
  matmul = (x: Value, y: Value, isTransposed = false): Value =>
    isTransposed ? this.op('FusedMatMul', [x, y], { transB: 1 }, microsoft) : this.op('MatMul', [x, y]);

  integers(values: readonly number[]): Value {
    const name = `integers(${values.join()})`;
    const bytes = Buffer.from(BigInt64Array.from(values, BigInt).buffer);
    this.state.graph.initializers.set(name, { type: 'int64', shape: [values.length], bytes });
    return name;
  }

  /** A constant in float32. */
  exactly(name: string, values: readonly number[], shape: readonly number[] = [values.length]): Value {
    const bytes = Buffer.from(Float32Array.from(values).buffer);
    this.state.graph.initializers.set(name, { type: 'float32', shape, bytes });
    return name;
  }

  /** A constant in the type that is computed in. */
  floats = (name: string, values: readonly number[], shape?: readonly number[]): Value =>
    this.constantInPrecision(this.exactly(name, values, shape), 'F32');
  number = (value: number): Value => this.floats(`number(${value})`, [value], []);

  /** A weight in the type that is computed in: half precision is read as it is and cast as the graph is loaded. */
  weight(name: string): Value {
    const tensor = this.tensor(name);
    const value = this.at(name).path;
    this.state.used.add(value);
    this.state.graph.initializers.set(value, tensor);
    return this.constantInPrecision(value, tensor.type);
  }

  /** A weight of which few rows are used, as it is stored: `Gather` and then `cast` what it gives. */
  table(name: string): Value {
    const { path } = this.at(name);
    this.state.used.add(path);
    this.state.graph.initializers.set(path, this.tensor(name));
    return path;
  }

  /** torch.nn.Linear [rows, tokens, in] to [rows, tokens, out], with its adapter: x W + b + (x A) B. */
  linear(x: Value, name: string): Value {
    const layer = this.at(name);
    const [out, into] = layer.shape('weight');
    const y = layer.matmul(x, layer.weight('weight'), !layer.tensor('weight').isTransposed);
    const biased = layer.has('bias') ? layer.add(y, layer.weight('bias')) : y;
    return layer.adapted(biased, [into], out, (a, b) => layer.matmul(layer.matmul(x, a, true), b, true));
  }

  /** torch.nn.Conv2d, with its adapter: its first factor is a convolution of the same size to `rank` channels. */
  conv(x: Value, name: string, { stride = 1, pads }: ConvOptions = {}): Value {
    const layer = this.at(name);
    const [out, into, size] = layer.shape('weight');
    const padding = pads ?? Array<number>(4).fill((size - 1) / 2);
    const weights = [layer.weight('weight'), ...(layer.has('bias') ? [layer.weight('bias')] : [])];
    const attributes = { kernel_shape: [size, size], strides: [stride, stride], pads: padding };
    const y = layer.op('Conv', [x, ...weights], attributes);
    return layer.adapted(y, [into, size, size], out, (a, b) => {
      const low = layer.lowRankConv(x, layer.reshape(a, 0, 0, into, size * size), into, size, stride, padding);
      return layer.op('Reshape', [layer.matmul(b, low), layer.op('Shape', [y])]);
    });
  }

  /** torch.nn.LayerNorm over the last axis. */
  layerNorm(x: Value, name: string, epsilon = 1e-5): Value {
    const layer = this.at(name);
    const weights = [layer.weight('weight'), layer.weight('bias')];
    return layer.op('LayerNormalization', [x, ...weights], { axis: 2, epsilon });
  }

  /** torch.nn.GroupNorm of [rows, channels, height, width]. */
  groupNorm(x: Value, name: string, groups: number, epsilon: number): Value {
    const layer = this.at(name);
    const [ones, zeros] = [1, 0].map((v) => layer.floats(`groups(${groups}, ${v})`, Array<number>(groups).fill(v)));
    const flat = layer.op('InstanceNormalization', [layer.reshape(x, 0, groups, -1), ones, zeros], { epsilon });
    const y = layer.op('Reshape', [flat, layer.op('Shape', [x])]);
    const [weight, bias] = ['weight', 'bias'].map((one) => layer.reshape(layer.weight(one), -1, 1, 1));
    return layer.add(layer.mul(y, weight), bias);
  }

  /** Attention of [rows, tokens, heads * width] with several heads. */
  attention(query: Value, key: Value, value: Value, heads: number, isCausal = false): Value {
    const attributes = { num_heads: heads, ...(isCausal && { unidirectional: 1 }) };
    return this.op('MultiHeadAttention', [query, key, value], attributes, microsoft);
  }

  /**
   * The sum of a layer and its adapter, whose factors are inputs with a row for each row of the batch: `lora_A`
   * [rows, rank, ...in] and `lora_B` [rows, out, rank], scaled. If they have rank 0, the layer is as without.
   */
  private adapted(y: Value, into: number[], out: number, delta: (a: Value, b: Value) => Value): Value {
    if (!this.state.isAdapted(this.path)) return y;
    const rank = `${this.path}.rank`;
    const a = this.input(`${this.path}.lora_A`, ['batch', rank, ...into]);
    const b = this.input(`${this.path}.lora_B`, ['batch', out, rank]);
    return this.whenFilled(
      a,
      () => this.add(y, delta(a, b)),
      () => this.op('Identity', [y]),
    );
  }

  /**
   * A convolution with a kernel [rows, rank, in, size * size] for each row, to [rows, rank, pixels]. No operator does
   * that, so it is a product to `rank` channels for each place of the kernel, which are added up at their offsets.
   */
  private lowRankConv(
    x: Value,
    kernels: Value,
    into: number,
    size: number,
    stride: number,
    pads: readonly number[],
  ): Value {
    const places = size * size;
    // [rows, places * rank, in], times [rows, in, pixels].
    const factors = this.reshape(this.transpose(kernels, 0, 3, 1, 2), 0, -1, into);
    const products = this.matmul(factors, this.reshape(x, 0, into, -1));
    if (places === 1 && stride === 1) return products;
    const sizes = this.op('Shape', [x], { start: 2 });
    const planes = this.op('Reshape', [products, this.concat([this.integers([0, places, -1]), sizes], 0)]);
    const [top, left, bottom, right] = pads;
    const padded = this.op('Pad', [planes, this.integers([0, 0, 0, top, left, 0, 0, 0, bottom, right])]);
    const axes = this.integers([1, 3, 4]);
    const steps = this.integers([1, stride, stride]);
    const parts = Array.from({ length: places }, (_, place) => {
      const begin = [Math.floor(place / size), place % size];
      const end = begin.map((at) => (at + 1 === size ? 2 ** 31 : at + 1 - size));
      const range = [this.integers([place, ...begin]), this.integers([place + 1, ...end])];
      return this.op('Slice', [padded, ...range, axes, steps]);
    });
    const sum = parts.reduce((all, part) => this.add(all, part));
    return this.reshape(this.op('Squeeze', [sum, this.integers([1])]), 0, 0, -1);
  }

  /** The value of one of two branches, of which only one is computed: the first if an input has any elements. */
  whenFilled(input: Value, whenTrue: () => Value, whenFalse: () => Value): Value {
    const condition = this.cast(this.op('Size', [input]), 'bool');
    const graphOf = (write: () => Value): Graph => {
      const { nodes } = this.state;
      const own: Node[] = (this.state.nodes = []);
      try {
        const name = write();
        return { ...emptyGraph(), nodes: own, outputs: [{ name, type: this.state.precision }] };
      } finally {
        this.state.nodes = nodes;
      }
    };
    return this.op('If', [condition], { then_branch: graphOf(whenTrue), else_branch: graphOf(whenFalse) });
  }

  private push(
    opType: string,
    inputs: readonly Value[],
    outputs: Value[],
    attributes: Record<string, Attribute>,
    domain = '',
  ): Value[] {
    this.state.nodes.push({ name: outputs[0], opType, domain, inputs, outputs, attributes });
    return outputs;
  }

  private constantInPrecision(value: Value, type: keyof typeof tensorTypes): Value {
    const { precision, casts } = this.state;
    if (tensorTypes[type].onnx === dataTypes[precision]) return value;
    const outputs = [`${value}/${precision}`];
    const attributes = { to: dataTypes[precision] };
    casts.set(value, { name: outputs[0], opType: 'Cast', domain: '', inputs: [value], outputs, attributes });
    return outputs[0];
  }

  private tensor(name: string): NamedTensor {
    const { path } = this.at(name);
    const tensor = this.state.tensors.get(path);
    if (!tensor) throw new WeightsFileError(`The weights have no ${JSON.stringify(path)}.`);
    return tensor;
  }

  private unique(name: string): string {
    const count = this.state.names.get(name) ?? 0;
    this.state.names.set(name, count + 1);
    return count === 0 ? name : `${name}#${count}`;
  }
}
