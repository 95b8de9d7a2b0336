/** A size in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** Pixels: row-major, three bytes for each of a picture, one for each of a mask. */
export interface Pixels extends Size {
  data: Uint8Array;
}

/** Pixels of sRGB: three bytes each, or four with alpha. */
export interface Colours extends Pixels {
  channels: number;
}

/** The size whose shape is nearest to a picture's. */
export function nearestSize<S extends Size>(sizes: readonly S[], { width, height }: Size): S {
  const distance = (size: Size): number => Math.abs(Math.log((size.width * height) / (size.height * width)));
  return sizes.toSorted((a, b) => distance(a) - distance(b))[0];
}
