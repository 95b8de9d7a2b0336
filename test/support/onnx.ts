import {
  asMessage,
  bytesField,
  type Field,
  readFields,
  readInt,
  readText,
  varintField,
} from '../../libs/diffusion/src/onnx/protobuf';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';

// Numbers of fields and types are those of onnx.proto.
const [float, int64] = [1, 7];
const attributeTypes = { int: 2, ints: 7 };

/** The graph that a test needs. */
export interface GraphToWrite {
  nodes: NodeToWrite[];
  initializers?: InitializerToWrite[];
  inputs?: (string | Value)[];
  outputs?: Value[];
  valueInfos?: string[];
}

export interface NodeToWrite {
  op: string;
  name?: string;
  inputs: string[];
  outputs: string[];
  ints?: Record<string, number[]>;
  int?: Record<string, number>;
}

export interface InitializerToWrite {
  name: string;
  dims: number[];
  dataType: number;
  /** Inline values, or their location. */
  raw?: Uint8Array;
  packedFloats?: Float32Array;
  external?: Record<string, string>;
}

/** Name and shape of an input or output: numbers are fixed, names are free. */
interface Value {
  name: string;
  shape: readonly (number | string)[];
}

/** A message of the fields of several lists. */
const message = (...fields: Buffer[][]): Buffer => Buffer.concat(fields.flat());
const texts = (number: number, values: readonly string[]): Buffer[] => values.map((text) => bytesField(number, text));

/** The bytes of an ONNX model. */
export function encodeOnnx(graph: GraphToWrite): Buffer {
  const { nodes, initializers = [], inputs = [], outputs = [], valueInfos = [] } = graph;
  const encoded = message(
    nodes.map((node) => bytesField(1, encodeOne(node))),
    texts(2, ['graph']),
    initializers.map((initializer) => bytesField(5, encodeInitializer(initializer))),
    inputs.map((value) => bytesField(11, encodeValue(value))),
    outputs.map((value) => bytesField(12, encodeValue(value))),
    valueInfos.map((name) => bytesField(13, encodeValue(name))),
  );
  return message([varintField(1, 8), bytesField(7, encoded), bytesField(8, varintField(2, 17))]);
}

/** The bytes of an ONNX model whose inputs and output have shapes. */
export const encodeGraph = (
  nodes: NodeToWrite[],
  initializers: InitializerToWrite[],
  inputs: Value[],
  output: Value,
): Buffer => encodeOnnx({ nodes, initializers, inputs, outputs: [output] });

/** One operation, with its integer attributes. */
export const encodeNode = (
  op: string,
  inputs: string[],
  output: string,
  ints: Record<string, number[]> = {},
  int: Record<string, number> = {},
): NodeToWrite => ({ op, inputs, outputs: [output], ints, int });

/** The values of a tensor in float32. */
export function encodeWeights(name: string, dims: number[], valueOf: (index: number) => number): InitializerToWrite {
  const length = dims.reduce((product, dim) => product * dim, 1);
  const values = Float32Array.from({ length }, (_, index) => valueOf(index));
  return { name, dims, dataType: float, raw: new Uint8Array(values.buffer) };
}

/** A list of integers in int64. */
export function encodeIntegers(name: string, values: number[]): InitializerToWrite {
  const raw = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  return { name, dims: [values.length], dataType: int64, raw };
}

function encodeOne({ op, name = '', inputs, outputs, ints = {}, int = {} }: NodeToWrite): Buffer {
  const attributes = [
    ...Object.entries(ints).map(([key, values]) => [
      bytesField(1, key),
      ...values.map((value) => varintField(8, value)),
      varintField(20, attributeTypes.ints),
    ]),
    ...Object.entries(int).map(([key, value]) => [
      bytesField(1, key),
      varintField(3, value),
      varintField(20, attributeTypes.int),
    ]),
  ];
  return message(
    texts(1, inputs),
    texts(2, outputs),
    [bytesField(3, name), bytesField(4, op)],
    attributes.map((fields) => bytesField(5, message(fields))),
  );
}

function encodeInitializer({ name, dims, dataType, raw, packedFloats, external }: InitializerToWrite): Buffer {
  const entries = Object.entries(external ?? {}).map((entry) =>
    bytesField(13, message([bytesField(1, entry[0]), bytesField(2, entry[1])])),
  );
  return message(
    dims.map((length) => varintField(1, length)),
    [varintField(2, dataType)],
    packedFloats ? [bytesField(4, Buffer.from(packedFloats.buffer))] : [],
    [bytesField(8, name)],
    raw ? [bytesField(9, Buffer.from(raw))] : [],
    entries,
    external ? [varintField(14, 1)] : [],
  );
}

function encodeValue(value: string | Value, type = float): Buffer {
  if (typeof value === 'string') return bytesField(1, value);
  const dims = value.shape.map((dim) =>
    bytesField(1, typeof dim === 'number' ? varintField(1, dim) : bytesField(2, dim)),
  );
  const tensor = message([varintField(1, type), bytesField(2, message(dims))]);
  return message([bytesField(1, value.name), bytesField(2, bytesField(1, tensor))]);
}

/** Says what takes the place of a field; without an answer it stays. */
type Change = (field: Field) => Buffer | undefined;
/** Copies a field with changes inside. */
type Copy = (field: Field, inner: Change) => Buffer;

/** A copy of a model, with other fields in its graph, and some more. */
function withGraph(model: Buffer, change: (source: BufferSource, copied: Copy) => Change, more: Buffer[] = []) {
  const source = new BufferSource(model);
  const copied: Copy = (field, inner) => {
    const fields = [...readFields(source, asMessage(field).begin, field.end)];
    return message(fields.map((one) => inner(one) ?? model.subarray(one.tagBegin, one.end)));
  };
  const whole: Field = { number: 0, wire: 'bytes', tagBegin: 0, begin: 0, end: model.length };
  return copied(whole, (field) =>
    field.number === 7 ? bytesField(7, message([copied(field, change(source, copied)), ...more])) : undefined,
  );
}

/** A copy of an ONNX model with other shapes for inputs and outputs, by name. */
export function withShapes(model: Buffer, shapes: Record<string, Value['shape']>): Buffer {
  return withGraph(model, (source) => (field) => {
    if (field.number !== 11 && field.number !== 12) return undefined;
    const child = (of: Field, number: number): Field =>
      [...readFields(source, of.begin, of.end)].find((inner) => inner.number === number)!;
    const name = readText(source, child(field, 1));
    if (!(name in shapes)) return undefined;
    const type = readInt(source, child(child(child(field, 2), 1), 1));
    return bytesField(field.number, encodeValue({ name, shape: shapes[name] }, type));
  });
}

/**
 * A copy of a U-Net that needs more memory than any machine can address as soon as a call has so many rows: it fills
 * and discards `min(rows, at) ^ exponent` numbers, which must be few for fewer rows.
 */
export function failingAtRows(unet: Buffer, at: number, exponent: number): Buffer {
  return extended(unet, { out_sample: 'prediction' }, { first: 0, row_limit: at, exponent }, [
    encodeNode('Shape', ['sample'], 'sample_shape'),
    encodeNode('Gather', ['sample_shape', 'first'], 'row_count'),
    encodeNode('Min', ['row_count', 'row_limit'], 'limited'),
    encodeNode('Pow', ['limited', 'exponent'], 'number_count'),
    encodeNode('ConstantOfShape', ['number_count'], 'numbers'),
    encodeNode('ReduceMax', ['numbers'], 'zero'),
    encodeNode('Add', ['prediction', 'zero'], 'out_sample'),
  ]);
}

/** A copy of a U-Net that takes a timestep per row and gives every row the first of them. */
export function usingFirstTimestep(unet: Buffer): Buffer {
  return extended(unet, { timestep: 'first_timestep' }, { first: 0 }, [
    encodeNode('Gather', ['timestep', 'first'], 'first_timestep'),
  ]);
}

/**
 * Adds to a graph lists of one int64, and nodes, which are run when they can.
 * @param renamed names that its own nodes read or write
 */
function extended(
  model: Buffer,
  renamed: Record<string, string>,
  numbers: Record<string, number>,
  nodes: NodeToWrite[],
): Buffer {
  const change =
    (source: BufferSource, copied: Copy): Change =>
    (node) => {
      const rename: Change = (field) => {
        const name = field.number <= 2 ? renamed[readText(source, field)] : undefined;
        return name === undefined ? undefined : bytesField(field.number, name);
      };
      return node.number === 1 ? bytesField(1, copied(node, rename)) : undefined;
    };
  const initializers = Object.entries(numbers).map(([name, value]) => encodeIntegers(name, [value]));
  return withGraph(model, change, [
    ...nodes.map((node) => bytesField(1, encodeOne(node))),
    ...initializers.map((initializer) => bytesField(5, encodeInitializer(initializer))),
  ]);
}
