import { type NamedTensor, type NamedTensors, tensorTypes, WeightsFileError } from '../weights/named-tensor';
import {
  type Attribute,
  type DataType,
  dataTypes,
  emptyGraph,
  type Graph,
  type Initializer,
  type Node,
  type Value,
} from './graph';
import { GraphBuilder } from './graph-builder';
import { int8Weight } from './int8';

export interface ModuleOptions {
  tensors: NamedTensors;
  /** Whether the layer at a path takes an adapter; by default none does. */
  isAdapted?: (path: string) => boolean;
  /** Type to compute in; inputs and outputs are float32 in any case. */
  precision?: 'float32' | 'float16' | 'bfloat16';
  /** Whether to do without what WebGPU gets wrong or lacks: fused attention, fused products, tables in half precision. */
  isPlain?: boolean;
  /** Whether a row's adapter gives the same bits beside any other rows, on any number of threads of the processor. */
  isSteady?: boolean;
}

/** A graph, and the names of the weights that it does not use. */
export interface BuiltGraph {
  graph: Graph;
  unused: string[];
}

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

/**
 * A module of a model, as PyTorch knows it: a path, and the weights below it. Its methods add nodes to the model's
 * graph, named by the path of the layer that they are of.
 */
export class Module extends GraphBuilder {
  private constructor(
    private readonly state: GraphState,
    readonly path: string,
  ) {
    super();
  }

  /** The module of a whole model, with an empty graph. */
  static of(options: ModuleOptions): Module {
    const defaults = { isAdapted: () => false, precision: 'float32', isPlain: false, isSteady: false } as const;
    const graph = emptyGraph();
    const paths = new Set<string>();
    for (const name of options.tensors.keys())
      for (let end = name.length; end > 0; end = name.lastIndexOf('.', end - 1)) paths.add(name.slice(0, end));
    const own = { graph, nodes: graph.nodes, casts: new Map<Value, Node>(), paths };
    return new Module({ ...defaults, ...options, ...own, used: new Set(), names: new Map() }, '');
  }

  /** The module below this one: `at('down_blocks', 0)`. */
  at(...names: (string | number)[]): Module {
    return new Module(this.state, [...(this.path ? [this.path] : []), ...names].join('.'));
  }

  /** Whether there are weights with this name or below it. */
  has(...names: (string | number)[]): boolean {
    return this.state.paths.has(this.at(...names).path);
  }

  /** The modules `name.0`, `name.1` and so on. @throws WeightsFileError if one is missing between others */
  list(name: string): Module[] {
    const found: Module[] = [];
    while (this.has(name, found.length)) found.push(this.at(name, found.length));
    const { path } = this.at(name, found.length);
    const isLater = (weight: string): boolean => Number(weight.split('.')[0]) > found.length;
    if (this.at(name).weightNames().some(isLater)) throw new WeightsFileError(`The weights lack ${path}.`);
    return found;
  }

  weightNames(): string[] {
    const prefix = this.path && `${this.path}.`;
    return [...this.state.tensors.keys()].flatMap((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : []));
  }

  /** The shape of a weight. @throws WeightsFileError if there is none of this name, or with so many axes */
  shape(name: string, axes?: number): readonly number[] {
    const { shape } = this.tensor(name);
    if (axes !== undefined && shape.length !== axes)
      throw new WeightsFileError(`The weight ${this.at(name).path} is of ${shape.length} axes, and not ${axes}.`);
    return shape;
  }

  finish(): BuiltGraph {
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
    const isHalf = this.state.precision !== 'float32';
    this.push(isHalf ? 'Cast' : 'Identity', [value], [name], isHalf ? { to: dataTypes.float32 } : {});
  }

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

  /** A float32 value in the type that is computed in. */
  inPrecision = (x: Value): Value => (this.state.precision === 'float32' ? x : this.cast(x));
  cast = (x: Value, type: DataType = this.state.precision): Value => this.op('Cast', [x], { to: dataTypes[type] });
  matmul = (x: Value, y: Value): Value => this.op('MatMul', [x, y]);

  /** Parts of these widths of tokens [rows, tokens, width]. */
  split = (x: Value, ...widths: number[]): Value[] =>
    this.ops('Split', widths.length, [x, this.integers(widths)], { axis: 2 });

  override integers(values: readonly number[]): Value {
    if (values.every(Number.isInteger)) return super.integers(values);
    throw new WeightsFileError(`The weights of ${this.path} have shapes that do not fit each other.`);
  }

  floats(name: string, values: ArrayLike<number>, shape?: readonly number[]): Value {
    return this.constantInPrecision(this.exactly(name, values, shape), 'F32');
  }

  /** A weight in the type that is computed in: half precision is read as it is and cast as the graph is loaded. */
  weight(name: string): Value {
    const { int8, type } = this.tensor(name);
    const value = this.stored(name);
    return int8 ? int8Weight(this, name, int8) : this.constantInPrecision(value, type);
  }

  /** A weight of which few rows are used, as it is stored: `Gather` and then `cast` what it gives. */
  table(name: string): Value {
    return this.isPlain || this.tensor(name).int8 ? this.weight(name) : this.stored(name);
  }

  /** A weight as it is stored. */
  stored(name: string, tensor = this.tensor(name)): Value {
    const { path } = this.at(name);
    this.state.used.add(path);
    return this.constant(path, tensor);
  }

  /** The list that new nodes go to: what one branch computes is not there for another. */
  get scope(): object {
    return this.state.nodes;
  }

  get isPlain(): boolean {
    return this.state.isPlain;
  }

  get isSteady(): boolean {
    return this.state.isSteady;
  }

  get isAdapted(): boolean {
    return this.state.isAdapted(this.path);
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

  protected constant(name: Value, initializer: Initializer): Value {
    this.state.graph.initializers.set(name, initializer);
    return name;
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

  tensor(name: string): NamedTensor {
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
