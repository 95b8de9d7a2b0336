export interface Size {
  width: number;
  height: number;
}

/** A rectangle in a picture, in percent of its edges. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The middle that is left of a picture in another shape. @param ratio of that, width divided by height */
export function cropOf({ width, height }: Size, ratio: number): Box {
  const part = ratio / (width / height);
  const [w, h] = part < 1 ? [100 * part, 100] : [100, 100 / part];
  return { left: (100 - w) / 2, top: (100 - h) / 2, width: w, height: h };
}

export const percentStyle = ({ left, top, width, height }: Box): Record<string, string> => ({
  left: `${left}%`,
  top: `${top}%`,
  width: `${width}%`,
  height: `${height}%`,
});
