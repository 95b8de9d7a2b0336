import { readFloats } from '../safetensors/safetensors';
import type { ByteSource } from '../tensor/byte-source';
import type { LoraModule } from './lora';
import type { LowRankSum } from './low-rank-sum';

/**
 * The factors of one layer: `up` [out, rank] and `down` [rank, in * height * width], which includes a middle factor.
 */
export interface LoraFactors {
  up: Float32Array;
  down: Float32Array;
}

/** Reads one layer's factors from the file. */
export async function readFactors(
  source: ByteSource,
  { up, down, mid, rank, shape }: LoraModule,
  sum: Pick<LowRankSum, 'add'>,
): Promise<LoraFactors> {
  const lower = readFloats(source, down);
  if (!mid) return { up: readFloats(source, up), down: lower };
  const taps = shape[2] * shape[3];
  return { up: readFloats(source, up), down: await foldMid(readFloats(source, mid), lower, rank, taps, sum) };
}

/**
 * Tucker form: down[a, i, k] = sum over b of mid[a, b, k] * down[b, i], one matrix product for each
 * position k of the kernel.
 */
async function foldMid(
  mid: Float32Array,
  down: Float32Array,
  rank: number,
  taps: number,
  sum: Pick<LowRankSum, 'add'>,
): Promise<Float32Array> {
  const folded = new Float32Array(down.length * taps);
  const left = new Float32Array(rank * rank);
  for (let tap = 0; tap < taps; tap++) {
    for (let i = 0; i < left.length; i++) left[i] = mid[i * taps + tap];
    const product = await sum.add(new Float32Array(down.length), left, down, rank);
    for (let i = 0; i < product.length; i++) folded[i * taps + tap] = product[i];
  }
  return folded;
}
