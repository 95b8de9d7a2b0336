import { isAbsolute } from 'node:path';
import type { ByteSource } from '../tensor/byte-source';
import {
  asMessage,
  bytesField,
  bytesFieldHead,
  type Field,
  ProtobufError,
  readFields,
  readInt,
  readInts,
  readText,
  varintField,
} from './protobuf';

/** TensorProto.DataType of the weights we change. */
export const FLOAT = 1;
export const FLOAT16 = 10;

/** Bytes per element by TensorProto.DataType, 0 for types of no fixed size. */
export const elementBytes = [0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2];

/**
 * A range of the model file, or of the file at `location` beside it. Without `end` it extends to the end of that file.
 */
interface DataSpan {
  location?: string;
  begin: number;
  end?: number;
}

/**
 * A constant of the graph, and the position of its little-endian values; `data` is undefined if we cannot read them.
 */
export interface OnnxInitializer {
  name: string;
  dims: number[];
  dataType: number;
  data: DataSpan | undefined;
  /** Its whole field in the model file, and the fields inside that describe it. */
  field: Field;
  described: Field[];
}

export interface OnnxNode {
  name: string;
  opType: string;
  inputs: string[];
  outputs: string[];
  /** The attributes with an integer or a list of integers. */
  ints: Map<string, number[]>;
}

/** The new position of an initializer's values; `dims` and `dataType` replace the old ones if given. */
export interface ExternalData {
  location: string;
  offset: number;
  length: number;
  dims?: number[];
  dataType?: number;
}

/** A part of a file to be written: bytes of the old file, or new ones. */
export type Part = { begin: number; end: number } | Buffer;

/** Field numbers (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). */
export const MODEL = { irVersion: 1, graph: 7, opset: 8 };
export const OPSET = { version: 2 };
export const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12, valueInfo: 13 };
export const NODE = { input: 1, output: 2, name: 3, opType: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, int: 3, ints: 8 };
export const VALUE_INFO = { name: 1, type: 2 };
export const TYPE = { tensor: 1 };
export const TENSOR_TYPE = { elementType: 1, shape: 2 };
export const SHAPE = { dim: 1 };
const DIM = { value: 1 };
const ENTRY = { key: 1, value: 2 };
const TENSOR = { dims: 1, dataType: 2, floatData: 4, name: 8, rawData: 9, externalData: 13, dataLocation: 14 };
/**
 * float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data, external_data, data_location.
 */
const TENSOR_VALUES = [4, 5, 6, 7, 9, 10, 11, 13, 14];

export function countOf(dims: readonly number[]): number {
  return dims.reduce((product, length) => product * length, 1);
}

export function readNode(source: ByteSource, message: Field): OnnxNode {
  const node: OnnxNode = { name: '', opType: '', inputs: [], outputs: [], ints: new Map() };
  for (const field of readFields(source, message.begin, message.end)) {
    if (field.number === NODE.input) node.inputs.push(readText(source, field));
    else if (field.number === NODE.output) node.outputs.push(readText(source, field));
    else if (field.number === NODE.name) node.name = readText(source, field);
    else if (field.number === NODE.opType) node.opType = readText(source, field);
    else if (field.number === NODE.attribute) {
      let name = '';
      const ints: number[] = [];
      for (const part of readFields(source, asMessage(field).begin, field.end)) {
        if (part.number === ATTRIBUTE.name) name = readText(source, part);
        else if (part.number === ATTRIBUTE.int || part.number === ATTRIBUTE.ints) ints.push(...readInts(source, part));
      }
      if (ints.length > 0) node.ints.set(name, ints);
    }
  }
  return node;
}

/** The name of the value that a ValueInfoProto describes. */
export function readValueInfo(source: ByteSource, message: Field): string {
  let name = '';
  for (const field of readFields(source, message.begin, message.end))
    if (field.number === VALUE_INFO.name) name = readText(source, field);
  return name;
}

/**
 * The lengths of the axes of the tensor that a ValueInfoProto describes, each undefined where it is free; undefined if
 * nothing is said of its axes.
 */
export function readShape(source: ByteSource, message: Field): (number | undefined)[] | undefined {
  const shapes = inside(source, [message], VALUE_INFO.type, TYPE.tensor, TENSOR_TYPE.shape);
  if (shapes.length === 0) return undefined;
  return inside(source, shapes, SHAPE.dim).map((dim) => {
    const [value] = inside(source, [dim], DIM.value);
    return value && readInt(source, value) > 0 ? readInt(source, value) : undefined;
  });
}

/** The TensorProto.DataType of what a ValueInfoProto describes; undefined if it is no tensor or its type is not told. */
export function readElementType(source: ByteSource, message: Field): number | undefined {
  const [type] = inside(source, [message], VALUE_INFO.type, TYPE.tensor, TENSOR_TYPE.elementType);
  return type && readInt(source, type);
}

/** The fields with these numbers, each inside those of the number before. */
function inside(source: ByteSource, messages: readonly Field[], ...numbers: number[]): readonly Field[] {
  let fields = messages;
  for (const number of numbers)
    fields = fields.flatMap((field) =>
      [...readFields(source, asMessage(field).begin, field.end)].filter((one) => one.number === number),
    );
  return fields;
}

export function readInitializer(source: ByteSource, message: Field): OnnxInitializer {
  const dims: number[] = [];
  const described: Field[] = [];
  const values: Field[] = [];
  const entries = new Map<string, string>();
  let name = '';
  let dataType = 0;
  let isExternal = false;
  for (const field of readFields(source, message.begin, message.end)) {
    if (field.number === TENSOR.dims) dims.push(...readInts(source, field));
    else if (field.number === TENSOR.name) name = readText(source, field);
    else if (field.number === TENSOR.dataType) dataType = readInt(source, field);
    else if (field.number === TENSOR.dataLocation) isExternal = readInt(source, field) === 1;
    else if (field.number === TENSOR.externalData) {
      const { key, value } = readEntry(source, asMessage(field));
      entries.set(key, value);
    } else if (TENSOR_VALUES.includes(field.number)) values.push(field);
    if (!TENSOR_VALUES.includes(field.number)) described.push(field);
  }
  const what = `the initializer ${JSON.stringify(name)}`;
  const bytes = countOf(dims) * (elementBytes[dataType] ?? 0);
  if (dims.some((length) => length < 0) || !Number.isSafeInteger(bytes))
    throw new ProtobufError(`${what} has the impossible shape [${dims.join(', ')}]`);
  const data = isExternal ? readExternal(entries, what) : readInline(values, dataType);
  if (data?.end !== undefined && bytes > 0 && data.end - data.begin !== bytes)
    throw new ProtobufError(`${what} has ${data.end - data.begin} bytes where its shape needs ${bytes}`);
  return { name, dims, dataType, data, field: message, described };
}

function readEntry(source: ByteSource, message: Field): { key: string; value: string } {
  const entry = { key: '', value: '' };
  for (const field of readFields(source, message.begin, message.end)) {
    if (field.number === ENTRY.key) entry.key = readText(source, field);
    else if (field.number === ENTRY.value) entry.value = readText(source, field);
  }
  return entry;
}

/** Raw bytes, or packed float32 values, which have the same form. */
function readInline(values: Field[], dataType: number): DataSpan | undefined {
  const [field] = values;
  if (values.length !== 1 || field.wire !== 'bytes') return undefined;
  const isRaw = field.number === TENSOR.rawData || (field.number === TENSOR.floatData && dataType === FLOAT);
  return isRaw ? { begin: field.begin, end: field.end } : undefined;
}

function readExternal(entries: Map<string, string>, what: string): DataSpan {
  const location = entries.get('location') ?? '';
  const [offset, length] = [entries.get('offset') ?? '0', entries.get('length')];
  if (location === '' || isAbsolute(location) || location.split(/[\\/]/).includes('..') || location.includes('\0'))
    throw new ProtobufError(`${what} is in the file ${JSON.stringify(location)}, which is not beside the model`);
  if (![offset, length ?? '0'].every((text) => /^\d{1,15}$/.test(text)))
    throw new ProtobufError(`${what} has a position that is not a number`);
  const begin = Number(offset);
  return { location, begin, end: length === undefined ? undefined : begin + Number(length) };
}

/** The initializer's field with its values in another file; its description is copied. */
export function moveInitializer({ field, described }: OnnxInitializer, change: ExternalData): Part[] {
  const replaced = new Set([change.dims && TENSOR.dims, change.dataType && TENSOR.dataType]);
  const parts: Part[] = described
    .filter(({ number }) => !replaced.has(number))
    .map(({ tagBegin, end }) => ({ begin: tagBegin, end }));
  parts.push(...(change.dims ?? []).map((length) => varintField(TENSOR.dims, length)));
  if (change.dataType !== undefined) parts.push(varintField(TENSOR.dataType, change.dataType));
  for (const key of ['location', 'offset', 'length'] as const) {
    const entry = Buffer.concat([bytesField(ENTRY.key, key), bytesField(ENTRY.value, String(change[key]))]);
    parts.push(bytesField(TENSOR.externalData, entry));
  }
  parts.push(varintField(TENSOR.dataLocation, 1));
  return [bytesFieldHead(field.number, partsLength(parts)), ...parts];
}

export function partsLength(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + (Buffer.isBuffer(part) ? part.length : part.end - part.begin), 0);
}
