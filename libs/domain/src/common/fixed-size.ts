import type { AspectRatio } from './aspect-ratio';
import { aspectRatios, sizeOf } from './aspect-ratio';

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
