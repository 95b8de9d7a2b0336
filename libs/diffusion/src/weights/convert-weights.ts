import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { isBlockType } from '../gguf/blocks';
import { safetensorsHeader } from '../safetensors/write-safetensors';
import { rotate, rotationOf } from '../tensor/hadamard';
import { encodeBfloat16 } from '../tensor/half';
import { int8Metadata } from './int8-form';
import {
  byteLength,
  countOf,
  type NamedTensor,
  type NamedTensors,
  type NumberType,
  readBytes,
  readValues,
  rowsOf,
  stretchesOf,
  tensorTypes,
} from './named-tensor';

/** Precisions that weights can be brought to: `float32` leaves numbers that are read as they are. */
export type TargetPrecision = 'bfloat16' | 'float32' | 'int8';

/** The file of weights in another precision, before it is written. */
export interface Conversion {
  /** Its length. */
  bytes: number;
  /** Writes it; it has its name once it is complete. Tensors that an earlier call wrote are kept. */
  write(file: string, options?: WriteOptions): Promise<void>;
}

interface WriteOptions {
  /** Gets the length of what is written, at first of what was found. */
  onBytes?: ((bytes: number) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Bytes that may not have come to the disk yet: a later call writes twice as many again. */
  syncBytes?: number;
}

/**
 * Plans to bring weights to another precision: linear layers to int8, or what is float32 to bfloat16. All else stays as
 * it is, but for blocks of GGUF and float8: these become float32 where that is asked for, and else bfloat16.
 * @param keptInFloat names of weights that do not become int8
 */
export async function planConversion(
  tensors: NamedTensors,
  precision: TargetPrecision,
  keptInFloat: RegExp,
): Promise<Conversion> {
  const outputs = [...tensors].map(([name, tensor]): Output => {
    const { type, shape } = tensor;
    const isLinear = name.endsWith('.weight') && shape.length === 2 && shape[1] % 16 === 0;
    if (precision === 'int8' && isLinear && !keptInFloat.test(name)) return { name, tensor, to: 'I8' };
    const isRounded = precision === 'bfloat16' && type === 'F32';
    if (!isBlockType(type) && !type.startsWith('F8') && !isRounded) return { name, tensor, to: type };
    return { name, tensor, to: precision === 'float32' || shape.length < 2 ? 'F32' : 'BF16' };
  });
  // So values begin at a multiple of their size: the lengths of those in int8 are multiples of 16.
  outputs.sort((a, b) => orderOf(a) - orderOf(b));
  const layers = outputs.filter(({ to }) => to === 'I8');
  const rotations = layers.map(
    ({ name, tensor }) =>
      [name.replace(/\.weight$/, ''), tensor.int8?.rotation ?? rotationOf(tensor.shape[1])] as const,
  );
  const metadata = { source: await digestOf(tensors), ...(layers.length > 0 && int8Metadata(new Map(rotations))) };
  const header = safetensorsHeader(new Map(outputs.flatMap(entriesOf)), metadata);
  const bytes = outputs.reduce((sum, output) => sum + lengthOf(output), header.length);
  const write: Conversion['write'] = async (file, options = {}) => {
    const part = `${file}.part`;
    const found = await stat(file).catch(() => undefined);
    // It may be there, of an earlier installation that ended later; a link is a file of others too.
    if (found) await (found.nlink > 1 ? rm(file) : rename(file, part));
    const handle = await open(part, 'a+');
    try {
      await writeOutputs(handle, header, outputs, options);
    } finally {
      await handle.close();
    }
    await rename(part, file);
  };
  return { bytes, write };
}

/** A tensor and the type that it is written in. */
interface Output {
  name: string;
  tensor: NamedTensor;
  to: NumberType;
}

const orderOf = ({ to }: Output): number => (to === 'I8' ? 0 : 1 / tensorTypes[to].bytes);

/** A tensor of the new file. */
interface Entry {
  shape: readonly number[];
  dtype: NumberType;
}

/** What the file has of an output: the scales of a weight in int8 follow it. */
function entriesOf({ name, tensor: { shape }, to }: Output): [string, Entry][] {
  const own: [string, Entry] = [name, { shape, dtype: to }];
  return to === 'I8' ? [own, [`${name}_scale`, { shape: shape.slice(0, 1), dtype: 'F32' }]] : [own];
}

const lengthOf = (output: Output): number =>
  entriesOf(output).reduce((sum, [, { shape, dtype }]) => sum + countOf(shape) * tensorTypes[dtype].bytes, 0);

/** The beginning of each tensor tells one model from another, and reading all of them would take minutes. */
async function digestOf(tensors: NamedTensors): Promise<string> {
  const hash = createHash('sha256');
  for (const [name, tensor] of tensors) {
    hash.update(JSON.stringify([name, tensor.type, tensor.shape]));
    hash.update(await readBytes(tensor, 0, Math.min(byteLength(tensor), 4096)));
  }
  return hash.digest('hex');
}

async function writeOutputs(
  file: FileHandle,
  header: Buffer,
  outputs: readonly Output[],
  { onBytes, signal, syncBytes = 2 ** 26 }: WriteOptions,
): Promise<void> {
  const { size } = await file.stat();
  const found = Buffer.alloc(header.length);
  await file.read(found, 0, found.length, 0);
  const left = [...outputs];
  let done = 0;
  if (header.equals(found)) {
    done = header.length;
    // What was written last may not have come to the disk.
    const isKept = (output: Output): boolean => done + lengthOf(output) + 2 * syncBytes < size;
    while (left.length > 0 && isKept(left[0])) done += lengthOf(left.shift()!);
  }
  await file.truncate(done);
  if (done === 0) await file.appendFile(header);
  done ||= header.length;
  onBytes?.(done);
  let synced = done;
  for (const output of left)
    for await (const bytes of piecesOf(output)) {
      signal?.throwIfAborted();
      await file.appendFile(bytes);
      onBytes?.((done += bytes.length));
      if (done - synced < syncBytes) continue;
      await file.sync();
      synced = done;
    }
  await file.sync();
}

/** Values that are in memory at once. */
const pieceValues = 2 ** 22;

async function* piecesOf({ tensor, to }: Output): AsyncGenerator<Uint8Array> {
  const { shape, type, int8 } = tensor;
  const width = countOf(shape.slice(1));
  const scales = new Float32Array(shape[0] ?? 1);
  const rows = Math.max(1, Math.floor(pieceValues / width));
  let done = 0;
  for (const part of stretchesOf(tensor).flatMap((stretch) => piecesOfRows(stretch, rows))) {
    if (int8) scales.set(await readValues(part.int8!.scale), done);
    if (to === type) yield await readBytes(part, 0, byteLength(part));
    else if (to === 'I8') yield quantised(await readValues(part), width, scales.subarray(done));
    else if (to === 'BF16') yield bytesOf(encodeBfloat16(await readValues(part)));
    else yield bytesOf(await readValues(part));
    done += part.shape[0] ?? 1;
  }
  if (to === 'I8') yield bytesOf(scales);
}

function piecesOfRows(tensor: NamedTensor, rows: number): NamedTensor[] {
  const [length] = tensor.shape;
  // A single number has none.
  if (length === undefined) return [tensor];
  const begins = Array.from({ length: Math.ceil(length / rows) }, (_, i) => i * rows);
  return begins.map((begin) => rowsOf(tensor, begin, Math.min(begin + rows, length)));
}

const bytesOf = ({ buffer, byteOffset, byteLength: length }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length);

/**
 * Rows of a weight as whole numbers of -127 to 127, after their rotation.
 * @param scales get what they are to be multiplied with
 */
function quantised(values: Float32Array, width: number, scales: Float32Array): Uint8Array {
  rotate(values, rotationOf(width));
  const numbers = new Int8Array(values.length);
  for (let row = 0; row * width < values.length; row++) {
    const [begin, end] = [row * width, (row + 1) * width];
    let largest = 0;
    for (let i = begin; i < end; i++) largest = Math.max(largest, Math.abs(values[i]));
    scales[row] = largest / 127;
    const factor = largest > 0 ? 127 / largest : 0;
    for (let i = begin; i < end; i++) numbers[i] = Math.floor(values[i] * factor + 0.5);
  }
  return bytesOf(numbers);
}
