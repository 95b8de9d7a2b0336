import { isAbsolute } from 'node:path';
import type { ByteSource } from '../tensor/byte-source';
import { asMessage, type Field, ProtobufError, readFields, readInt, readInts, readText } from './protobuf';

/** TensorProto.DataType of float32. */
const FLOAT = 1;

/** Bytes per element by TensorProto.DataType, 0 for types of no fixed size. */
const elementBytes = [0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2];

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
}

export interface OnnxNode {
  name: string;
  opType: string;
  inputs: string[];
  outputs: string[];
  /** The attributes with an integer or a list of integers. */
  ints: Map<string, number[]>;
}

/** Field numbers (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). */
export const MODEL = { graph: 7 };
export const GRAPH = { node: 1, initializer: 5 };
const NODE = { input: 1, output: 2, name: 3, opType: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, int: 3, ints: 8 };
const ENTRY = { key: 1, value: 2 };
const TENSOR = { dims: 1, dataType: 2, floatData: 4, name: 8, rawData: 9, externalData: 13, dataLocation: 14 };
/**
 * float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data, external_data, data_location.
 */
const TENSOR_VALUES = [4, 5, 6, 7, 9, 10, 11, 13, 14];

function countOf(dims: readonly number[]): number {
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

export function readInitializer(source: ByteSource, message: Field): OnnxInitializer {
  const dims: number[] = [];
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
  }
  const what = `the initializer ${JSON.stringify(name)}`;
  const bytes = countOf(dims) * (elementBytes[dataType] ?? 0);
  if (dims.some((length) => length < 0) || !Number.isSafeInteger(bytes))
    throw new ProtobufError(`${what} has the impossible shape [${dims.join(', ')}]`);
  const data = isExternal ? readExternal(entries, what) : readInline(values, dataType);
  if (data?.end !== undefined && bytes > 0 && data.end - data.begin !== bytes)
    throw new ProtobufError(`${what} has ${data.end - data.begin} bytes where its shape needs ${bytes}`);
  return { name, dims, dataType, data };
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
