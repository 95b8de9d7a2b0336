import type { ModelFacts } from '@app/diffusion';

/** Allowed batch sizes; with few of them the runtime can reuse the memory that it keeps for each shape. */
const buckets = [8, 4, 2, 1] as const;

/** Channels and attention heads at the full resolution of Stable Diffusion 1.x's U-Net, the level that needs most memory. */
const channels = 320;
const heads = 8;
/** Feature maps of that level that exist at the same time, including skip connections. */
const liveMaps = 40;

/**
 * Splits pictures into batches: 7 pictures with at most 4 at once become 4, 2 and 1.
 * @param maxBatchSize at least 1
 */
export function planBatches(count: number, maxBatchSize: number): number[] {
  const batches: number[] = [];
  for (let left = count; left > 0; left -= batches.at(-1)!)
    batches.push(buckets.find((size) => size <= Math.min(left, maxBatchSize)) ?? 1);
  return batches;
}

/**
 * An upper estimate of the bytes that drawing one picture takes: the scores of self-attention before and after the softmax, and
 * the feature maps, for the two rows of guidance.
 */
export function bytesPerImage(
  { vaeScaleFactor, dtypes }: Pick<ModelFacts, 'vaeScaleFactor' | 'dtypes'>,
  { width, height }: { width: number; height: number },
): number {
  const positions = (width / vaeScaleFactor) * (height / vaeScaleFactor);
  const elementBytes = dtypes.unet === 'float16' ? 2 : 4;
  return 2 * positions * (2 * heads * positions + liveMaps * channels) * elementBytes;
}
