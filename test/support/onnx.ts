import { bytesField, varintField } from '../../libs/diffusion/src/onnx/protobuf';

// Numbers of fields and types are those of onnx.proto.
const float = 1;
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

/** Numbers in its shape are fixed, names are free. */
interface Value {
  name: string;
  shape: readonly (number | string)[];
}

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

/** With the shapes of inputs and output. */
export const encodeGraph = (
  nodes: NodeToWrite[],
  initializers: InitializerToWrite[],
  inputs: Value[],
  output: Value,
): Buffer => encodeOnnx({ nodes, initializers, inputs, outputs: [output] });

/** One operation, with integer attributes. */
export const encodeNode = (
  op: string,
  inputs: string[],
  output: string,
  ints: Record<string, number[]> = {},
  int: Record<string, number> = {},
): NodeToWrite => ({ op, inputs, outputs: [output], ints, int });

/** In float32. */
export function encodeWeights(name: string, dims: number[], valueOf: (index: number) => number): InitializerToWrite {
  const length = dims.reduce((product, dim) => product * dim, 1);
  const values = Float32Array.from({ length }, (_, index) => valueOf(index));
  return { name, dims, dataType: float, raw: new Uint8Array(values.buffer) };
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
