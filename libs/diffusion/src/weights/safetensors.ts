import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { decodeBfloat16, decodeFloat16 } from './half';

/** The element types we read. F16 and BF16 are kept as their 16 bits: Node 20 has no typed array for them. */
const arrays = {
  F64: Float64Array,
  F32: Float32Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  I64: BigInt64Array,
  U64: BigUint64Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
} as const;

export type SafetensorsDtype = keyof typeof arrays;
type SafetensorsArray = InstanceType<(typeof arrays)[SafetensorsDtype]>;

/** One tensor as the header describes it; `begin` and `end` are byte positions in the file. */
export interface SafetensorsInfo {
  dtype: SafetensorsDtype;
  shape: number[];
  begin: number;
  end: number;
}

/** One tensor with its values, row-major. F16 and BF16 values are raw bits: see {@link toFloat32}. */
export interface SafetensorsEntry {
  dtype: SafetensorsDtype;
  shape: number[];
  data: SafetensorsArray;
}

export interface SafetensorsHeader {
  tensors: Map<string, SafetensorsInfo>;
  metadata: Map<string, string>;
}

/** The file is not a well-formed safetensors file; the message is one plain sentence. */
export class SafetensorsError extends Error {
  override name = 'SafetensorsError';
}

/** Far above any real header (a full Stable Diffusion checkpoint needs about 150 KB), low enough to be parsed at once. */
const MAX_HEADER_BYTES = 16 * 1024 * 1024;

/**
 * Reads the header of a safetensors file, or of its bytes, and checks that the tensors fill the file without gap or overlap.
 * @throws SafetensorsError if the file is not well-formed; a file system error if it cannot be read.
 */
export function readSafetensorsHeader(source: string | Buffer): SafetensorsHeader {
  if (typeof source !== 'string') {
    return parseHeader(source.length, (begin, length) => source.subarray(begin, begin + length));
  }
  const file = openSync(source, 'r');
  try {
    return parseHeader(fstatSync(file).size, (begin, length) => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, readSync(file, bytes, 0, length, begin));
    });
  } finally {
    closeSync(file);
  }
}

/**
 * Reads every tensor, or those `only` selects by name.
 * @throws SafetensorsError if the file is not well-formed.
 */
export async function readSafetensors(
  path: string,
  only: (name: string) => boolean = () => true,
): Promise<Map<string, SafetensorsEntry>> {
  const { tensors } = readSafetensorsHeader(path);
  const entries = new Map<string, SafetensorsEntry>();
  const file = await open(path, 'r');
  try {
    for (const [name, info] of tensors) {
      if (!only(name)) continue;
      const bytes = new Uint8Array(info.end - info.begin);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, info.begin);
      entries.set(name, toEntry(name, info, bytes, bytesRead));
    }
  } finally {
    await file.close();
  }
  return entries;
}

/** As {@link readSafetensors}, without waiting; also takes the file's bytes. */
export function readSafetensorsSync(source: string | Buffer): Map<string, SafetensorsEntry> {
  const { tensors } = readSafetensorsHeader(source);
  const entries = new Map<string, SafetensorsEntry>();
  const file = typeof source === 'string' ? openSync(source, 'r') : undefined;
  try {
    for (const [name, info] of tensors) {
      const bytes = new Uint8Array(info.end - info.begin);
      if (file === undefined) bytes.set((source as Buffer).subarray(info.begin, info.end));
      const bytesRead = file === undefined ? bytes.length : readSync(file, bytes, 0, bytes.length, info.begin);
      entries.set(name, toEntry(name, info, bytes, bytesRead));
    }
  } finally {
    if (file !== undefined) closeSync(file);
  }
  return entries;
}

/** The values as float32: exact for F16, BF16 and small integers, rounded for F64 and large integers. */
export function toFloat32(entry: SafetensorsEntry): Float32Array {
  const { dtype, data } = entry;
  if (data instanceof Float32Array) return data;
  if (dtype === 'F16') return decodeFloat16(data as Uint16Array);
  if (dtype === 'BF16') return decodeBfloat16(data as Uint16Array);
  const values = new Float32Array(data.length);
  for (let i = 0; i < data.length; i++) values[i] = Number(data[i]);
  return values;
}

function toEntry(name: string, info: SafetensorsInfo, bytes: Uint8Array, bytesRead: number): SafetensorsEntry {
  if (bytesRead !== bytes.length) throw new SafetensorsError(`The file ends inside the tensor ${quote(name)}.`);
  return {
    dtype: info.dtype,
    shape: info.shape,
    data: new arrays[info.dtype](bytes.buffer as ArrayBuffer),
  };
}

/** Layout: 8 bytes little-endian header length, the JSON header, the tensors' bytes (https://github.com/huggingface/safetensors). */
function parseHeader(size: number, read: (begin: number, length: number) => Buffer): SafetensorsHeader {
  if (size < 10) throw new SafetensorsError(`The file is ${size} bytes long, which is too short for safetensors.`);
  const prefix = read(0, 8);
  if (prefix.length < 8) throw new SafetensorsError('The file ends inside its header.');
  const length = prefix.readBigUInt64LE();
  if (length > MAX_HEADER_BYTES) {
    throw new SafetensorsError(`The header claims ${length} bytes; at most ${MAX_HEADER_BYTES} are accepted.`);
  }
  const dataBegin = 8 + Number(length);
  if (dataBegin > size) {
    throw new SafetensorsError(`The header claims ${length} bytes, but the file has ${size - 8} after the length.`);
  }
  const bytes = read(8, Number(length));
  if (bytes.length < Number(length)) throw new SafetensorsError('The file ends inside its header.');
  const { text, header } = parseJson(bytes);

  const tensors = new Map<string, SafetensorsInfo>();
  const metadata = new Map<string, string>();
  for (const [name, value] of Object.entries(header)) {
    if (name === '__metadata__') {
      for (const [key, item] of Object.entries(asObject(value, 'The metadata'))) {
        if (typeof item !== 'string') throw new SafetensorsError(`The metadata ${quote(key)} is not a string.`);
        metadata.set(key, item);
      }
    } else {
      tensors.set(name, parseInfo(name, value, dataBegin, size));
    }
  }
  checkCoverage(tensors, dataBegin, size);
  const twice = findDuplicateKey(text);
  if (twice !== undefined) throw new SafetensorsError(`The header has the key ${quote(twice)} twice.`);
  return { tensors, metadata };
}

function parseJson(bytes: Buffer): { text: string; header: Record<string, unknown> } {
  let text: string;
  let header: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    header = JSON.parse(text);
  } catch {
    throw new SafetensorsError('The header is not valid JSON in UTF-8.');
  }
  return { text, header: asObject(header, 'The header') };
}

/** JSON.parse silently keeps the last of two equal keys. Expects text that has passed every other check, so it is not deep. */
function findDuplicateKey(text: string): string | undefined {
  const scopes: (Set<string> | undefined)[] = [];
  let expectsKey = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '{' || character === '[') scopes.push(character === '{' ? new Set() : undefined);
    else if (character === '}' || character === ']') scopes.pop();
    if (character === '{' || character === ',') expectsKey = scopes.at(-1) !== undefined;
    if (character !== '"') continue;
    const begin = i++;
    while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
    if (!expectsKey) continue;
    const key = JSON.parse(text.slice(begin, i + 1)) as string;
    if (scopes.at(-1)!.has(key)) return key;
    scopes.at(-1)!.add(key);
    expectsKey = false;
  }
  return undefined;
}

function parseInfo(name: string, value: unknown, dataBegin: number, size: number): SafetensorsInfo {
  const { dtype, shape, data_offsets: offsets, ...unknown } = asObject(value, `The entry of ${quote(name)}`);
  for (const key of Object.keys(unknown)) {
    throw new SafetensorsError(`The tensor ${quote(name)} has the unknown key ${quote(key)}.`);
  }
  if (typeof dtype !== 'string' || !Object.hasOwn(arrays, dtype)) {
    throw new SafetensorsError(
      `The tensor ${quote(name)} has the type ${quote(dtype)}; accepted are ${Object.keys(arrays).join(', ')}.`,
    );
  }
  if (!isSizes(shape)) throw new SafetensorsError(`The tensor ${quote(name)} has no valid shape.`);
  if (!isSizes(offsets) || offsets.length !== 2) {
    throw new SafetensorsError(`The tensor ${quote(name)} has no valid data offsets.`);
  }
  const [begin, end] = [dataBegin + offsets[0], dataBegin + offsets[1]];
  if (begin > end || end > size) {
    throw new SafetensorsError(
      `The tensor ${quote(name)} lies at bytes ${offsets[0]} to ${offsets[1]}, outside the ${size - dataBegin} bytes of data.`,
    );
  }
  const known = dtype as SafetensorsDtype;
  const needed = shape.reduce((product, length) => product * length, arrays[known].BYTES_PER_ELEMENT);
  if (needed !== end - begin) {
    throw new SafetensorsError(
      `The tensor ${quote(name)} of type ${dtype} and shape [${shape.join(', ')}] needs ${needed} bytes, but has ${end - begin}.`,
    );
  }
  return { dtype: known, shape, begin, end };
}

function checkCoverage(tensors: Map<string, SafetensorsInfo>, dataBegin: number, size: number): void {
  let position = dataBegin;
  const ordered = [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end);
  for (const [name, { begin, end }] of ordered) {
    if (begin < position) throw new SafetensorsError(`The tensor ${quote(name)} overlaps another one.`);
    if (begin > position) {
      throw new SafetensorsError(`There is a gap of ${begin - position} bytes before the tensor ${quote(name)}.`);
    }
    position = end;
  }
  if (position !== size) throw new SafetensorsError(`There are ${size - position} bytes after the last tensor.`);
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SafetensorsError(`${what} is not a JSON object.`);
  }
  return value as Record<string, unknown>;
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

/** A name of the file in a sentence: escaped and never longer than a line. */
function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
