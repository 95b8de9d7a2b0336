import type { ByteSource } from '../tensor/byte-source';
import { quote } from './quote';

/** Bytes per element of the supported types. */
export const elementSizes = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I64: 8,
  U64: 8,
  I32: 4,
  U32: 4,
  I16: 2,
  U16: 2,
  I8: 1,
  U8: 1,
  BOOL: 1,
} as const;

export type SafetensorsDtype = keyof typeof elementSizes;

/** One tensor as the header describes it; `begin` and `end` are byte positions in the file. */
export interface SafetensorsInfo {
  dtype: SafetensorsDtype;
  shape: number[];
  begin: number;
  end: number;
}

export interface SafetensorsHeader {
  tensors: Map<string, SafetensorsInfo>;
  metadata: Map<string, string>;
}

/**
 * A full Stable Diffusion checkpoint needs about 150 KB, a LoRA whose metadata lists its training images several MB.
 */
const MAX_HEADER_BYTES = 8 * 1024 * 1024;

/**
 * Reads the header of a safetensors file and checks that the tensors fill the file without gap or overlap. No tensor is
 * read; the limited length of the header bounds the work.
 * Layout: 8 bytes little-endian header length, the JSON header, the tensors' bytes
 * (https://github.com/huggingface/safetensors).
 * @throws SafetensorsError if the file is not well-formed.
 */
export function readSafetensorsHeader(source: ByteSource): SafetensorsHeader {
  const { size } = source;
  if (size < 10) throw new SafetensorsError(`The file is ${size} bytes long, which is too short for safetensors.`);
  const begin = source.bytes(0, 8);
  if (begin[0] === '<'.charCodeAt(0) && begin[7] !== 0)
    throw new SafetensorsError('The file is a web page: its address shows the file, and does not give it.');
  const length = begin.readBigUInt64LE();
  if (length > MAX_HEADER_BYTES)
    throw new SafetensorsError(`The header claims ${length} bytes; at most ${MAX_HEADER_BYTES} are accepted.`);
  const dataBegin = 8 + Number(length);
  if (dataBegin > size)
    throw new SafetensorsError(`The header claims ${length} bytes, but the file has ${size - 8} after the length.`);
  const header = parseJson(source.bytes(8, dataBegin));
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
  return { tensors, metadata };
}

function parseJson(bytes: Buffer): Record<string, unknown> {
  let header: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    scanHeader(text);
    header = JSON.parse(text);
  } catch (error) {
    if (error instanceof SafetensorsError) throw error;
    throw new SafetensorsError('The header is not valid JSON in UTF-8.');
  }
  return asObject(header, 'The header');
}

function parseInfo(name: string, value: unknown, dataBegin: number, size: number): SafetensorsInfo {
  const { dtype, shape, data_offsets: offsets, ...unknown } = asObject(value, `The entry of ${quote(name)}`);
  for (const key of Object.keys(unknown))
    throw new SafetensorsError(`The tensor ${quote(name)} has the unknown key ${quote(key)}.`);
  if (typeof dtype !== 'string' || !Object.hasOwn(elementSizes, dtype)) {
    const accepted = Object.keys(elementSizes).join(', ');
    throw new SafetensorsError(`The tensor ${quote(name)} has the type ${quote(dtype)}; accepted are ${accepted}.`);
  }
  if (!isSizes(shape)) throw new SafetensorsError(`The tensor ${quote(name)} has no valid shape.`);
  if (!isSizes(offsets) || offsets.length !== 2)
    throw new SafetensorsError(`The tensor ${quote(name)} has no valid data offsets.`);
  const [begin, end] = [dataBegin + offsets[0], dataBegin + offsets[1]];
  if (begin > end || end > size)
    throw new SafetensorsError(
      `The tensor ${quote(name)} lies at bytes ${offsets[0]} to ${offsets[1]}, outside the ${size - dataBegin} bytes of data.`,
    );
  const known = dtype as SafetensorsDtype;
  const needed = shape.reduce((product, length) => product * length, elementSizes[known]);
  if (needed !== end - begin)
    throw new SafetensorsError(
      `The tensor ${quote(name)} of type ${dtype} and shape [${shape.join(', ')}] needs ${needed} bytes, but has ${end - begin}.`,
    );
  return { dtype: known, shape, begin, end };
}

function checkCoverage(tensors: Map<string, SafetensorsInfo>, dataBegin: number, size: number): void {
  let position = dataBegin;
  const ordered = [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end);
  for (const [name, { begin, end }] of ordered) {
    if (begin < position) throw new SafetensorsError(`The tensor ${quote(name)} overlaps another one.`);
    if (begin > position)
      throw new SafetensorsError(`There is a gap of ${begin - position} bytes before the tensor ${quote(name)}.`);
    position = end;
  }
  if (position !== size) throw new SafetensorsError(`There are ${size - position} bytes after the last tensor.`);
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SafetensorsError(`${what} is not a JSON object.`);
  return value as Record<string, unknown>;
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

/** The file is not a well-formed safetensors file; the message is one plain sentence. */
export class SafetensorsError extends Error {
  override name = 'SafetensorsError';
}

/** Deepest nesting of a valid header: the header, a tensor's entry, and its shape. */
const MAX_DEPTH = 3;
/** Keys of all objects together. A LoRA of every layer of SD 1.5 has about 1,200 tensors with four keys each. */
const MAX_KEYS = 100_000;
/** Names of layers have up to some hundred characters. */
const MAX_KEY_LENGTH = 1_000;
/** A weight has at most four dimensions. */
const MAX_LIST_LENGTH = 8;

/** An object or list that is open at the current position. */
interface Scope {
  keys?: Set<string>;
  commas: number;
}

/**
 * Scans a header before it is parsed, so that a hostile one cannot make the parser expensive: it limits the
 * depth, the keys and the lists, and rejects repeated keys, of which JSON.parse would silently keep the last. The
 * text need not be JSON.
 * @throws SafetensorsError
 */
function scanHeader(text: string): void {
  const scopes: Scope[] = [];
  let keys = 0;
  let expectsKey = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '{' || character === '[') {
      if (scopes.length === MAX_DEPTH) throw new SafetensorsError(`The header has more than ${MAX_DEPTH} levels.`);
      scopes.push({ commas: 0, ...(character === '{' && { keys: new Set() }) });
      expectsKey = character === '{';
    } else if (character === '}' || character === ']') {
      scopes.pop();
    } else if (character === ',') {
      const scope = scopes.at(-1);
      expectsKey = scope?.keys !== undefined;
      if (scope && !expectsKey && ++scope.commas === MAX_LIST_LENGTH)
        throw new SafetensorsError(`The header has a list of more than ${MAX_LIST_LENGTH} elements.`);
    } else if (character === '"') {
      const begin = i++;
      while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
      if (!expectsKey) continue;
      expectsKey = false;
      if (i - begin > MAX_KEY_LENGTH)
        throw new SafetensorsError(`The header has a name of more than ${MAX_KEY_LENGTH} characters.`);
      if (++keys > MAX_KEYS) throw new SafetensorsError(`The header has more than ${MAX_KEYS} keys.`);
      remember(scopes.at(-1)!.keys!, JSON.parse(text.slice(begin, i + 1)) as string);
    }
  }
}

function remember(keys: Set<string>, key: string): void {
  if (keys.has(key)) throw new SafetensorsError(`The header has the key ${JSON.stringify(key)} twice.`);
  keys.add(key);
}
