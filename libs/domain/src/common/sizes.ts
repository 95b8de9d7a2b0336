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

/** Pixels of a picture, where a model was exported for them only. */
interface FixedSize {
  width?: number;
  height?: number;
}

/** The aspect ratios that a model with such graphs can draw. */
export function ratiosFor(fixed: FixedSize): AspectRatio[] {
  return aspectRatios.filter((ratio) => {
    const { width, height } = sizeOf[ratio];
    return width === (fixed.width ?? width) && height === (fixed.height ?? height);
  });
}

/** What a model with such graphs takes, as a part of a sentence. */
export const fixedPixels = ({ width, height }: FixedSize): string => `${width ?? 'any'} x ${height ?? 'any'} pixels`;

/** Why no request can be drawn with a model of such graphs, in two sentences; undefined if one can. */
export function problemOfSize(fixed: FixedSize): string | undefined {
  if (ratiosFor(fixed).length > 0) return undefined;
  const ours = aspectRatios.map((ratio) => `${sizeOf[ratio].width} x ${sizeOf[ratio].height}`).join(', ');
  return `No request can be drawn with it: its graphs take ${fixedPixels(fixed)} only, and requests are for ${ours}. Export it without a fixed size.`;
}
