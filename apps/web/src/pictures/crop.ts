import type { AspectRatio } from '../drawings/drawing';

export interface Size {
  width: number;
  height: number;
}

/** Width divided by height; models of other native sizes come close to it. */
export const ratioOf: Readonly<Record<AspectRatio, number>> = { square: 1, portrait: 2 / 3, landscape: 3 / 2 };

/** A rectangle in a picture, in percent of its edges. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The middle that is left of a picture in another shape. */
export function cropOf({ width, height }: Size, aspect: AspectRatio): Box {
  const part = ratioOf[aspect] / (width / height);
  const [w, h] = part < 1 ? [100 * part, 100] : [100, 100 / part];
  return { left: (100 - w) / 2, top: (100 - h) / 2, width: w, height: h };
}

/** The shape that crops the picture least. */
export function nearestAspect({ width, height }: Size): AspectRatio {
  const shapes = Object.keys(ratioOf) as AspectRatio[];
  const kept = (aspect: AspectRatio): number => {
    const box = cropOf({ width, height }, aspect);
    return box.width * box.height;
  };
  return shapes.reduce((best, aspect) => (kept(aspect) > kept(best) ? aspect : best));
}

export const percentStyle = ({ left, top, width, height }: Box): Record<string, string> => ({
  left: `${left}%`,
  top: `${top}%`,
  width: `${width}%`,
  height: `${height}%`,
});
