import type { ByteSource } from '../tensor/byte-source';

/** The bytes are not valid protobuf; the message says where. */
export class ProtobufError extends Error {
  override name = 'ProtobufError';
}

/**
 * One field of a message. `tagBegin` to `end` is the whole field; `begin` to `end` is its value without tag and length.
 */
export interface Field {
  number: number;
  wire: 'varint' | 'fixed64' | 'bytes' | 'fixed32';
  tagBegin: number;
  begin: number;
  end: number;
}

const wires = { 0: 'varint', 1: 'fixed64', 2: 'bytes', 5: 'fixed32' } as const;

/** Field numbers are below this (https://protobuf.dev/programming-guides/proto3/#assigning). */
const fieldNumbers = 2 ** 29;
/** Where the varint that was read last ends: a second result, without an object for each of hundreds of thousands. */
let varintEnd = 0;

/** The fields of the message at `begin` to `end`, in file order (https://protobuf.dev/programming-guides/encoding). */
export function* readFields(source: ByteSource, begin: number, end: number): Generator<Field> {
  let position = begin;
  while (position < end) {
    const tagBegin = position;
    const tag = Number(readVarint(source, position, end));
    const number = Math.floor(tag / 8);
    const wire = wires[(tag % 8) as keyof typeof wires];
    if (wire === undefined || number < 1 || number >= fieldNumbers)
      throw new ProtobufError(`there is no valid field at byte ${tagBegin}`);
    position = varintEnd;
    let valueEnd: number;
    if (wire === 'varint') {
      readVarint(source, position, end);
      valueEnd = varintEnd;
    } else if (wire === 'bytes') {
      const length = Number(readVarint(source, position, end));
      position = varintEnd;
      valueEnd = position + length;
    } else valueEnd = position + (wire === 'fixed64' ? 8 : 4);
    if (valueEnd > end) throw new ProtobufError(`the field at byte ${tagBegin} is cut short`);
    yield { number, wire, tagBegin, begin: position, end: valueEnd };
    position = valueEnd;
  }
}

/** The value of an int64, bool or enum field. */
export function readInt(source: ByteSource, field: Field): number {
  if (field.wire !== 'varint') throw new ProtobufError(`the field at byte ${field.tagBegin} is not a number`);
  return toInt(readVarint(source, field.begin, field.end));
}

/** The values of a repeated int64 field, packed or single. */
export function readInts(source: ByteSource, field: Field): number[] {
  if (field.wire !== 'bytes') return [readInt(source, field)];
  const values: number[] = [];
  for (let position = field.begin; position < field.end;) {
    values.push(toInt(readVarint(source, position, field.end)));
    position = varintEnd;
  }
  return values;
}

export function readText(source: ByteSource, field: Field): string {
  return source.text(field.begin, asMessage(field).end);
}

/** The field, if it has a length: a message, a string or bytes. */
export function asMessage(field: Field): Field {
  if (field.wire !== 'bytes') throw new ProtobufError(`the field at byte ${field.tagBegin} is not a message`);
  return field;
}

function toInt(value: number | bigint): number {
  if (typeof value === 'number') return value;
  const signed = BigInt.asIntN(64, value);
  const number = Number(signed);
  if (!Number.isSafeInteger(number)) throw new ProtobufError(`the number ${signed} is too large`);
  return number;
}

/**
 * A number of up to 28 bits as such, because nearly all are, and a larger one as a bigint. `varintEnd` says where it
 * ends.
 */
function readVarint(source: ByteSource, begin: number, limit: number): number | bigint {
  let small = 0;
  for (let i = 0; i < 4; i++) {
    if (begin + i >= limit) throw new ProtobufError(`a number is cut short at byte ${limit}`);
    const byte = source.byte(begin + i);
    small |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      varintEnd = begin + i + 1;
      return small;
    }
  }
  let value = BigInt(small);
  for (let i = 4; i < 10; i++) {
    if (begin + i >= limit) throw new ProtobufError(`a number is cut short at byte ${limit}`);
    const byte = source.byte(begin + i);
    value |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (byte < 0x80) {
      varintEnd = begin + i + 1;
      return value;
    }
  }
  throw new ProtobufError(`the number at byte ${begin} is longer than ten bytes`);
}

/** Encodes a varint field. Accepts non-negative integers. */
export function varintField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

/** Encodes a float field. */
export function floatField(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([varint(number * 8 + 5), bytes]);
}

/** Encodes a string, bytes or message field. */
export function bytesField(number: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([bytesFieldHead(number, bytes.length), bytes]);
}

/** Tag and length that precede a field's value of `length` bytes. */
export function bytesFieldHead(number: number, length: number): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(length)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return Buffer.from([...bytes, value]);
}
