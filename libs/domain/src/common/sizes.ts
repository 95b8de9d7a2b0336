/** Picture shapes that have a name. */
export const shapeWords = ['square', 'portrait', 'landscape'] as const;

/** A named shape, or width to height. */
export type AspectRatio = (typeof shapeWords)[number] | `${number}:${number}`;

/** How many times one edge may be as long as the other. */
const steepest = 4;

/** Of a ratio's text; whether it is too steep, no pattern says. */
export const ratioPattern = /^(?:[1-9]|[1-5]\d|6[0-4]):(?:[1-9]|[1-5]\d|6[0-4])$/;

/** Whether a value is a named shape, or a ratio from 1:4 to 4:1. */
export function isAspectRatio(value: unknown): value is AspectRatio {
  if (shapeWords.some((word) => word === value)) return true;
  if (typeof value !== 'string' || !ratioPattern.test(value)) return false;
  const [width, height] = value.split(':').map(Number);
  return Math.max(width / height, height / width) <= steepest;
}

/** Long edge in pixels of a `high_resolution` picture. */
export const highResolutionLongEdge = 4096;
