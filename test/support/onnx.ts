import type { Field } from '../../libs/diffusion/src/onnx/protobuf';
import {
  asMessage,
  bytesField,
  readFields,
  readInt,
  readText,
  varintField,
} from '../../libs/diffusion/src/onnx/protobuf';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';

/** The graph that a test needs; the field numbers below are those of onnx.proto. */
export interface GraphToWrite {
  nodes: { op: string; name?: string; inputs: string[]; outputs: string[]; ints?: Record<string, number[]> }[];
  initializers?: InitializerToWrite[];
  inputs?: string[];
  valueInfos?: string[];
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

/** The bytes of an ONNX model. */
export function encodeOnnx({ nodes, initializers = [], inputs = [], valueInfos = [] }: GraphToWrite): Buffer {
  const graph = Buffer.concat([
    ...nodes.map(({ op, name = '', inputs: reads, outputs, ints = {} }) => {
      const attributes = Object.entries(ints).map(([key, values]) =>
        bytesField(5, Buffer.concat([bytesField(1, key), ...values.map((value) => varintField(8, value))])),
      );
      const values = [...reads.map((input) => bytesField(1, input)), ...outputs.map((output) => bytesField(2, output))];
      return bytesField(1, Buffer.concat([...values, bytesField(3, name), bytesField(4, op), ...attributes]));
    }),
    bytesField(2, 'graph'),
    ...initializers.map((initializer) => bytesField(5, encodeInitializer(initializer))),
    ...inputs.map((name) => bytesField(11, bytesField(1, name))),
    ...valueInfos.map((name) => bytesField(13, bytesField(1, name))),
  ]);
  return Buffer.concat([varintField(1, 8), bytesField(7, graph), bytesField(8, varintField(2, 17))]);
}

/** A copy of an ONNX model with other shapes for inputs and outputs, by name: numbers are fixed, names are free. */
export function withShapes(model: Buffer, shapes: Record<string, readonly (number | string)[]>): Buffer {
  const source = new BufferSource(model);
  const edit = (field: Field, change: (inner: Field) => Buffer | undefined): Buffer =>
    Buffer.concat(
      [...readFields(source, asMessage(field).begin, field.end)].map(
        (inner) => change(inner) ?? model.subarray(inner.tagBegin, inner.end),
      ),
    );
  const child = (field: Field, number: number): Field =>
    [...readFields(source, field.begin, field.end)].find((inner) => inner.number === number)!;
  const declare = (value: Field): Buffer | undefined => {
    const name = readText(source, child(value, 1));
    if (!(name in shapes)) return undefined;
    const dims = shapes[name].map((dim) =>
      bytesField(1, typeof dim === 'number' ? varintField(1, dim) : bytesField(2, dim)),
    );
    const elementType = readInt(source, child(child(child(value, 2), 1), 1));
    const tensor = Buffer.concat([varintField(1, elementType), bytesField(2, Buffer.concat(dims))]);
    return Buffer.concat([bytesField(1, name), bytesField(2, bytesField(1, tensor))]);
  };
  const ofGraph = (field: Field): Buffer | undefined => {
    if (field.number !== 11 && field.number !== 12) return undefined;
    const declared = declare(field);
    return declared && bytesField(field.number, declared);
  };
  const whole: Field = { number: 0, wire: 'bytes', tagBegin: 0, begin: 0, end: model.length };
  return edit(whole, (field) => (field.number === 7 ? bytesField(7, edit(field, ofGraph)) : undefined));
}

function encodeInitializer({ name, dims, dataType, raw, packedFloats, external }: InitializerToWrite): Buffer {
  const entries = Object.entries(external ?? {}).map(([key, value]) =>
    bytesField(13, Buffer.concat([bytesField(1, key), bytesField(2, value)])),
  );
  return Buffer.concat([
    ...dims.map((length) => varintField(1, length)),
    varintField(2, dataType),
    ...(packedFloats ? [bytesField(4, Buffer.from(packedFloats.buffer))] : []),
    bytesField(8, name),
    ...(raw ? [bytesField(9, Buffer.from(raw))] : []),
    ...entries,
    ...(external ? [varintField(14, 1)] : []),
  ]);
}

/**
 * A copy of a U-Net that needs more memory than any machine can address as soon as a call has so many rows: it fills
 * and discards `min(rows, at) ^ exponent` numbers, which must be few for fewer rows.
 */
export function failingAtRows(unet: Buffer, at: number, exponent: number): Buffer {
  return extended(unet, {
    outputs: { out_sample: 'prediction' },
    numbers: { first: 0, row_limit: at, exponent },
    nodes: [
      ['Shape', ['sample'], 'sample_shape'],
      ['Gather', ['sample_shape', 'first'], 'row_count'],
      ['Min', ['row_count', 'row_limit'], 'limited'],
      ['Pow', ['limited', 'exponent'], 'number_count'],
      ['ConstantOfShape', ['number_count'], 'numbers'],
      ['ReduceMax', ['numbers'], 'zero'],
      ['Add', ['prediction', 'zero'], 'out_sample'],
    ],
  });
}

/** A copy of a U-Net that takes a timestep per row and gives every row the first of them. */
export function usingFirstTimestep(unet: Buffer): Buffer {
  return extended(unet, {
    inputs: { timestep: 'first_timestep' },
    numbers: { first: 0 },
    nodes: [['Gather', ['timestep', 'first'], 'first_timestep']],
  });
}

/**
 * What to add to a graph: names that its nodes read or write, renamed; lists of one int64; and nodes, which are run
 * when they can.
 */
interface Extension {
  inputs?: Record<string, string>;
  outputs?: Record<string, string>;
  numbers: Record<string, number>;
  nodes: [op: string, inputs: string[], output: string][];
}

function extended(model: Buffer, { inputs = {}, outputs = {}, numbers, nodes }: Extension): Buffer {
  const source = new BufferSource(model);
  const copied = (field: Field, change: (inner: Field) => Buffer | undefined): Buffer =>
    Buffer.concat(
      [...readFields(source, asMessage(field).begin, field.end)].map(
        (inner) => change(inner) ?? model.subarray(inner.tagBegin, inner.end),
      ),
    );
  const names: Record<number, Record<string, string>> = { 1: inputs, 2: outputs };
  const renamed = (field: Field): Buffer | undefined => {
    const name = names[field.number]?.[readText(source, field)];
    return name === undefined ? undefined : bytesField(field.number, name);
  };
  const node = ([op, reads, output]: Extension['nodes'][number]): Buffer =>
    bytesField(
      1,
      Buffer.concat([...reads.map((name) => bytesField(1, name)), bytesField(2, output), bytesField(4, op)]),
    );
  const number = ([name, value]: [string, number]): Buffer => {
    const raw = new Uint8Array(BigInt64Array.of(BigInt(value)).buffer);
    return bytesField(5, encodeInitializer({ name, dims: [1], dataType: 7, raw }));
  };
  const graph = (field: Field): Buffer =>
    Buffer.concat([
      copied(field, (inner) => (inner.number === 1 ? bytesField(1, copied(inner, renamed)) : undefined)),
      ...nodes.map(node),
      ...Object.entries(numbers).map(number),
    ]);
  const whole: Field = { number: 0, wire: 'bytes', tagBegin: 0, begin: 0, end: model.length };
  return copied(whole, (field) => (field.number === 7 ? bytesField(7, graph(field)) : undefined));
}
