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

/** The fields of the message at `begin` to `end`, in file order (https://protobuf.dev/programming-guides/encoding). */
export function* readFields(source: ByteSource, begin: number, end: number): Generator<Field> {
  let position = begin;
  while (position < end) {
    const tagBegin = position;
    const tag = readVarint(source, position, end);
    const number = Number(tag.value >> 3n);
    const wire = wires[Number(tag.value & 7n) as keyof typeof wires];
    if (wire === undefined || number < 1) throw new ProtobufError(`there is no valid field at byte ${tagBegin}`);
    position = tag.end;
    let valueEnd: number;
    if (wire === 'varint') valueEnd = readVarint(source, position, end).end;
    else if (wire === 'bytes') {
      const length = readVarint(source, position, end);
      position = length.end;
      if (length.value > BigInt(end - position)) throw new ProtobufError(`the field at byte ${tagBegin} is cut short`);
      valueEnd = position + Number(length.value);
    } else valueEnd = position + (wire === 'fixed64' ? 8 : 4);
    if (valueEnd > end) throw new ProtobufError(`the field at byte ${tagBegin} is cut short`);
    yield { number, wire, tagBegin, begin: position, end: valueEnd };
    position = valueEnd;
  }
}

/** The value of an int64, bool or enum field. */
export function readInt(source: ByteSource, field: Field): number {
  if (field.wire !== 'varint') throw new ProtobufError(`the field at byte ${field.tagBegin} is not a number`);
  return toInt(readVarint(source, field.begin, field.end).value);
}

/** The values of a repeated int64 field, packed or single. */
export function readInts(source: ByteSource, field: Field): number[] {
  if (field.wire !== 'bytes') return [readInt(source, field)];
  const values: number[] = [];
  for (let position = field.begin; position < field.end;) {
    const varint = readVarint(source, position, field.end);
    values.push(toInt(varint.value));
    position = varint.end;
  }
  return values;
}

export function readText(source: ByteSource, field: Field): string {
  return source.bytes(field.begin, asMessage(field).end).toString('utf8');
}

/** The field, if it has a length: a message, a string or bytes. */
export function asMessage(field: Field): Field {
  if (field.wire !== 'bytes') throw new ProtobufError(`the field at byte ${field.tagBegin} is not a message`);
  return field;
}

function toInt(value: bigint): number {
  const signed = BigInt.asIntN(64, value);
  const number = Number(signed);
  if (!Number.isSafeInteger(number)) throw new ProtobufError(`the number ${signed} is too large`);
  return number;
}

function readVarint(source: ByteSource, begin: number, limit: number): { value: bigint; end: number } {
  let small = 0;
  for (let i = 0; i < 4; i++) {
    if (begin + i >= limit) throw new ProtobufError(`a number is cut short at byte ${limit}`);
    const byte = source.byte(begin + i);
    small |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return { value: BigInt(small), end: begin + i + 1 };
  }
  let value = BigInt(small);
  for (let i = 4; i < 10; i++) {
    if (begin + i >= limit) throw new ProtobufError(`a number is cut short at byte ${limit}`);
    const byte = source.byte(begin + i);
    value |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (byte < 0x80) return { value, end: begin + i + 1 };
  }
  throw new ProtobufError(`the number at byte ${begin} is longer than ten bytes`);
}

/** Encodes a varint field. Accepts non-negative integers. */
export function varintField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
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
