import type { ModelFacts } from '@app/diffusion';

/** Channels and attention heads at the full resolution of the U-Net of Stable Diffusion 1.x, the widest of its levels in memory. */
const channels = 320;
const heads = 8;
/** Feature maps of that level that are alive at once, skip connections included. */
const liveMaps = 40;

/**
 * An upper estimate of the bytes that one row of a call of the U-Net takes: the scores of self-attention before and after the
 * softmax, and the feature maps.
 */
export function bytesPerRow(
  { vaeScaleFactor, dtypes }: Pick<ModelFacts, 'vaeScaleFactor' | 'dtypes'>,
  { width, height }: { width: number; height: number },
): number {
  const positions = (width / vaeScaleFactor) * (height / vaeScaleFactor);
  const elementBytes = dtypes.unet === 'float16' ? 2 : 4;
  return positions * (2 * heads * positions + liveMaps * channels) * elementBytes;
}
