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
