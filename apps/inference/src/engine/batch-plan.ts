import type { ModelFacts } from '@app/diffusion';

/** Sizes of batch that are drawn; with few of them the memory that the runtime keeps for each shape is used again. */
const buckets = [8, 4, 2, 1] as const;

/** Channels and attention heads at the full resolution of the U-Net of Stable Diffusion 1.x, the widest of its levels in memory. */
const channels = 320;
const heads = 8;
/** Feature maps of that level that are alive at once, skip connections included. */
const liveMaps = 40;

/**
 * Splits pictures into batches: 7 with at most 4 at once are 4, 2 and 1.
 * @param largest at least 1
 */
export function planBatches(count: number, largest: number): number[] {
  const batches: number[] = [];
  for (let left = count; left > 0; left -= batches.at(-1)!)
    batches.push(buckets.find((size) => size <= Math.min(left, largest)) ?? 1);
  return batches;
}

/**
 * An upper estimate of the bytes that one picture takes while it is drawn: the scores of self-attention before and after the
 * softmax, and the feature maps, for the two rows of guidance.
 */
export function bytesPerImage(
  { vaeScaleFactor, dtypes }: Pick<ModelFacts, 'vaeScaleFactor' | 'dtypes'>,
  { width, height }: { width: number; height: number },
): number {
  const positions = (width / vaeScaleFactor) * (height / vaeScaleFactor);
  const elementBytes = dtypes.unet === 'float16' ? 2 : 4;
  return 2 * positions * (2 * heads * positions + liveMaps * channels) * elementBytes;
}
