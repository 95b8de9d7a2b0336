/** Overlap of neighbouring tiles in pixels, if a tile is large enough. */
const widestOverlap = 32;

/** Position of a tile along one axis, and the weight of each of its enlarged pixels. */
export interface TileSpan {
  /** First pixel in the source. */
  start: number;
  /** First pixel in the enlarged picture. */
  enlargedStart: number;
  /** One weight per enlarged pixel inside the picture; the weights of a pixel in all tiles add up to 1. */
  weights: Float32Array;
}

/**
 * Covers an axis with tiles of one size; the last is moved back to end where the picture does. The weight moves from
 * one tile to the next over the middle half of their overlap; a tile's border, which lacks context, has weight 0.
 */
export function planTiles(length: number, tile: number, scale: number): TileSpan[] {
  const overlap = Math.min(widestOverlap, Math.floor(tile / 2));
  const starts = [0];
  while (starts.at(-1)! + tile < length) starts.push(Math.min(starts.at(-1)! + tile - overlap, length - tile));
  /** How far a position has moved from the previous tile to tile i, 0 to 1. */
  const passed = (at: number, i: number): number => {
    if (i === 0) return 1;
    if (i === starts.length) return 0;
    const middle = (starts[i] + starts[i - 1] + tile) / 2;
    return Math.min(1, Math.max(0, (at - middle) / (overlap / 2) + 0.5));
  };
  return starts.map((start, i) => {
    const weights = new Float32Array(Math.min(tile, length) * scale);
    for (let x = 0; x < weights.length; x++) {
      const at = start + (x + 0.5) / scale;
      weights[x] = passed(at, i) - passed(at, i + 1);
    }
    return { start, enlargedStart: start * scale, weights };
  });
}
