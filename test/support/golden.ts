import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readArray } from '../../libs/diffusion/src/safetensors/safetensors';
import { readSafetensorsHeader } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';

const folder = join(__dirname, '../golden/data');

/** Arrays recorded from Python, by name: float32, float64 or int64, row-major. */
export interface Golden {
  float32(name: string): Float32Array;
  float64(name: string): Float64Array;
  int64(name: string): BigInt64Array;
  shape(name: string): readonly number[];
  has(name: string): boolean;
}

/** The arrays of `test/golden/data/<name>.safetensors`; a missing one, or another type, throws. */
export function loadGolden(name: string): Golden {
  const source = new BufferSource(readFileSync(join(folder, `${name}.safetensors`)));
  const { tensors } = readSafetensorsHeader(source);
  const entry = (key: string) => {
    const found = tensors.get(key);
    if (!found) throw new Error(`${name}.safetensors has no array "${key}".`);
    return found;
  };
  const typed = (key: string, dtype: string) => {
    const found = entry(key);
    if (found.dtype !== dtype) throw new Error(`"${key}" of ${name}.safetensors is ${found.dtype}, not ${dtype}.`);
    return readArray(source, found);
  };
  return {
    float32: (key) => typed(key, 'F32') as Float32Array,
    float64: (key) => typed(key, 'F64') as Float64Array,
    int64: (key) => typed(key, 'I64') as BigInt64Array,
    shape: (key) => entry(key).shape,
    has: (key) => tensors.has(key),
  };
}

/** The table `test/golden/data/<name>.json`. */
export function loadGoldenTable<T>(name: string): T {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as T;
}

/** The largest absolute difference; equal infinities differ by 0, and a NaN or a different length gives infinity. */
export function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Infinity;
  let largest = 0;
  for (let i = 0; i < actual.length; i++) {
    if (actual[i] === expected[i]) continue;
    const difference = Math.abs(actual[i] - expected[i]);
    if (!(difference <= largest)) largest = Number.isNaN(difference) ? Infinity : difference;
  }
  return largest;
}

/** Appends a golden test's result as a JSON line to the file named by GOLDEN_TABLE, if set. */
export function recordGolden(name: string, cases: number, worst: number, tolerance: number): void {
  const table = process.env.GOLDEN_TABLE;
  if (table) appendFileSync(table, `${JSON.stringify({ name, cases, worst, tolerance })}\n`);
}
