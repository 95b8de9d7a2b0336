/** Picture shapes of the API. */
export const aspectRatios = ['square', 'portrait', 'landscape'] as const;
export type AspectRatio = (typeof aspectRatios)[number];

/** Drawn size in pixels of each shape. */
export const sizeOf: Readonly<Record<AspectRatio, { width: number; height: number }>> = {
  square: { width: 512, height: 512 },
  portrait: { width: 512, height: 768 },
  landscape: { width: 768, height: 512 },
};

/** Long edge in pixels of a `high_resolution` picture. */
export const highResolutionLongEdge = 4096;
