/** Edges of a picture in pixels. */
export interface PictureSize {
  width: number;
  height: number;
}

export type AspectRatio = 'square' | 'portrait' | 'landscape';

/** Portraits of common edges; those of others have the area of the square and two thirds of the height as width. */
const portraits: Readonly<Record<number, PictureSize>> = {
  512: { width: 512, height: 768 },
  // Source: the sizes that Stable Diffusion XL was trained on (Podell et al. 2023, appendix I).
  1024: { width: 832, height: 1216 },
};

const roundedTo64 = (edge: number): number => Math.max(64, Math.round(edge / 64) * 64);

/** The size in pixels of a picture of a model whose square ones have this edge. */
export function sizeOfPicture(edge: number, ratio: AspectRatio): PictureSize {
  if (ratio === 'square') return { width: edge, height: edge };
  const { width, height } = portraits[edge] ?? {
    width: roundedTo64(edge * Math.sqrt(2 / 3)),
    height: roundedTo64(edge * Math.sqrt(3 / 2)),
  };
  return ratio === 'portrait' ? { width, height } : { width: height, height: width };
}
