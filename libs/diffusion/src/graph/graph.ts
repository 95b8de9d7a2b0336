import { bytesField, floatField, varintField } from '../onnx/protobuf';
import { byteLength, type NamedTensor, tensorTypes } from '../weights/named-tensor';

/** The name of something that a node gives or takes. */
export type Value = string;

/** TensorProto.DataType of what graphs compute with. */
export const dataTypes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  bfloat16: 16,
} as const;
export type DataType = keyof typeof dataTypes;

/** A number is an integer, except in `floatAttributes`. */
export type Attribute = number | string | readonly number[] | Graph;

export interface Node {
  name: string;
  opType: string;
  /** Empty for operators of ONNX itself. */
  domain: string;
  inputs: readonly Value[];
  outputs: readonly Value[];
  attributes: Readonly<Record<string, Attribute>>;
}

/** An input or output; a name in place of a length says which ones are equal. */
export interface ValueInfo {
  name: Value;
  type: DataType;
  /** Absent for the outputs of a branch. */
  shape?: readonly (number | string)[];
}

/** Values that are part of the graph, or a weight that stays in its file. */
export type Initializer = NamedTensor | { type: DataType; shape: readonly number[]; bytes: Buffer };

export interface Graph {
  nodes: Node[];
  initializers: Map<Value, Initializer>;
  inputs: ValueInfo[];
  outputs: ValueInfo[];
}

/** Whether a node makes float32 of a weight in half precision. */
export const widensWeight = (
  { opType, inputs: [weight] }: Node,
  { initializers }: Pick<Graph, 'initializers'>,
): boolean => opType === 'Cast' && 'file' in (initializers.get(weight) ?? {});

export const emptyGraph = (): Graph => ({ nodes: [], initializers: new Map(), inputs: [], outputs: [] });

/** Attributes of the operators in use that are floating-point numbers. */
const floatAttributes = new Set(['epsilon', 'alpha', 'scale']);

/** Format and operator versions: the oldest that have all operators in use. */
const irVersion = 9;
const opsets = { '': 19, 'com.microsoft': 1 };

/**
 * The graph as an ONNX file. Field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 * @param locations name of each weights file, below the folder of the graph
 */
export function encodeGraph(graph: Graph, locations: ReadonlyMap<string, string>): Buffer {
  return Buffer.concat([
    varintField(1, irVersion),
    ...Object.entries(opsets).map(([domain, version]) => message(8, bytesField(1, domain), varintField(2, version))),
    message(7, ...graphFields(graph, locations)),
  ]);
}

/** A model that returns its input: the smallest there is, to try a device with. */
export function identityModel(): Buffer {
  const value = (name: Value): ValueInfo => ({ name, type: 'float32', shape: ['length'] });
  const node = { name: 'y', opType: 'Identity', domain: '', inputs: ['x'], outputs: ['y'], attributes: {} };
  return encodeGraph({ ...emptyGraph(), nodes: [node], inputs: [value('x')], outputs: [value('y')] }, new Map());
}

const message = (number: number, ...fields: Buffer[]): Buffer => bytesField(number, Buffer.concat(fields));

function graphFields(graph: Graph, locations: ReadonlyMap<string, string>): Buffer[] {
  return [
    ...graph.nodes.map((node) => message(1, ...nodeFields(node, locations))),
    bytesField(2, 'graph'),
    ...[...graph.initializers].map(([name, tensor]) => message(5, ...tensorFields(name, tensor, locations))),
    ...graph.inputs.map((value) => message(11, ...valueFields(value))),
    ...graph.outputs.map((value) => message(12, ...valueFields(value))),
  ];
}

function nodeFields(node: Node, locations: ReadonlyMap<string, string>): Buffer[] {
  return [
    ...node.inputs.map((name) => bytesField(1, name)),
    ...node.outputs.map((name) => bytesField(2, name)),
    bytesField(3, node.name),
    bytesField(4, node.opType),
    ...Object.entries(node.attributes).map(([name, value]) =>
      message(5, bytesField(1, name), ...attributeFields(name, value, locations)),
    ),
    bytesField(7, node.domain),
  ];
}

function attributeFields(name: string, value: Attribute, locations: ReadonlyMap<string, string>): Buffer[] {
  const type = (code: number): Buffer => varintField(20, code);
  if (typeof value === 'string') return [bytesField(4, value), type(3)];
  if (typeof value === 'number')
    return floatAttributes.has(name) ? [floatField(2, value), type(1)] : [varintField(3, value), type(2)];
  if ('nodes' in value) return [message(6, ...graphFields(value, locations)), type(5)];
  return [...value.map((item) => varintField(8, item)), type(7)];
}

function tensorFields(name: string, tensor: Initializer, locations: ReadonlyMap<string, string>): Buffer[] {
  if ('bytes' in tensor)
    return [
      ...tensor.shape.map((length) => varintField(1, length)),
      varintField(2, dataTypes[tensor.type]),
      bytesField(8, name),
      bytesField(9, tensor.bytes),
    ];
  const stored = tensor.isTransposed ? tensor.shape.toReversed() : tensor.shape;
  const entries = { location: locations.get(tensor.file)!, offset: tensor.offset, length: byteLength(tensor) };
  return [
    ...stored.map((length) => varintField(1, length)),
    varintField(2, tensorTypes[tensor.type].onnx),
    bytesField(8, name),
    ...Object.entries(entries).map(([key, value]) => message(13, bytesField(1, key), bytesField(2, String(value)))),
    varintField(14, 1),
  ];
}

function valueFields({ name, type, shape }: ValueInfo): Buffer[] {
  const lengths = shape?.map((length) =>
    message(1, typeof length === 'number' ? varintField(1, length) : bytesField(2, length)),
  );
  const axes = lengths ? [message(2, ...lengths)] : [];
  return [bytesField(1, name), message(2, message(1, varintField(1, dataTypes[type]), ...axes))];
}
