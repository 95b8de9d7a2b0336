import { bytesField, varintField } from '../../libs/diffusion/src/onnx/protobuf';

/** Field types of onnx.proto. */
const float = 1;
const int64 = 7;
const attributeTypes = { int: 2, ints: 7 };

/** Name and shape of an input or output: numbers are fixed, names are free. */
interface Value {
  name: string;
  shape: (number | string)[];
}

/** The bytes of an ONNX model of these nodes and weights. */
export function encodeGraph(nodes: Buffer[], weights: Buffer[], inputs: Value[], output: Value): Buffer {
  const graph = Buffer.concat([
    ...nodes.map((node) => bytesField(1, node)),
    bytesField(2, 'graph'),
    ...weights.map((tensor) => bytesField(5, tensor)),
    ...inputs.map((input) => bytesField(11, encodeValue(input))),
    bytesField(12, encodeValue(output)),
  ]);
  return Buffer.concat([varintField(1, 8), bytesField(7, graph), bytesField(8, varintField(2, 17))]);
}

function encodeValue({ name, shape }: Value): Buffer {
  const dims = shape.map((value) =>
    bytesField(1, typeof value === 'number' ? varintField(1, value) : bytesField(2, value)),
  );
  const type = Buffer.concat([varintField(1, float), bytesField(2, Buffer.concat(dims))]);
  return Buffer.concat([bytesField(1, name), bytesField(2, bytesField(1, type))]);
}

/** One operation, with its integer attributes. */
export function encodeNode(
  op: string,
  inputs: string[],
  output: string,
  ints: Record<string, number[]> = {},
  int: Record<string, number> = {},
): Buffer {
  const attributes = [
    ...Object.entries(ints).map(([name, values]) => [
      bytesField(1, name),
      ...values.map((value) => varintField(8, value)),
      varintField(20, attributeTypes.ints),
    ]),
    ...Object.entries(int).map(([name, value]) => [
      bytesField(1, name),
      varintField(3, value),
      varintField(20, attributeTypes.int),
    ]),
  ];
  return Buffer.concat([
    ...inputs.map((input) => bytesField(1, input)),
    bytesField(2, output),
    bytesField(4, op),
    ...attributes.map((fields) => bytesField(5, Buffer.concat(fields))),
  ]);
}

/** The values of a tensor in float32. */
export function encodeWeights(name: string, shape: number[], valueOf: (index: number) => number): Buffer {
  const size = shape.reduce((product, dim) => product * dim, 1);
  const values = Float32Array.from({ length: size }, (_, index) => valueOf(index));
  return Buffer.concat([
    ...shape.map((dim) => varintField(1, dim)),
    varintField(2, float),
    bytesField(8, name),
    bytesField(9, Buffer.from(values.buffer)),
  ]);
}

/** A list of integers in int64. */
export function encodeIntegers(name: string, values: number[]): Buffer {
  return Buffer.concat([
    varintField(1, values.length),
    varintField(2, int64),
    bytesField(8, name),
    bytesField(9, Buffer.from(BigInt64Array.from(values, BigInt).buffer)),
  ]);
}
