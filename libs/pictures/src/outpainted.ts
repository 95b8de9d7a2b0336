import type { PlaceInPicture } from '@app/domain';
import { NoPictureError } from './picture-error';
import type { Pixels, Size } from './pixels';

/**
 * Where a picture stands in the larger one that is drawn around it.
 * @param asked true: in the middle
 * @throws NoPictureError if it does not fit there, or leaves nothing to draw
 */
export function placeIn(size: Size, picture: Size, asked: true | PlaceInPicture): PlaceInPicture {
  const [spareX, spareY] = [size.width - picture.width, size.height - picture.height];
  const has = `has ${picture.width} x ${picture.height} pixels`;
  if (spareX < 0 || spareY < 0 || spareX + spareY === 0)
    throw new NoPictureError(
      `${has}, and one to draw around is smaller than what is drawn, ${size.width} x ${size.height}: ask for more, or send a smaller one`,
    );
  if (asked === true) return { x: spareX >> 1, y: spareY >> 1 };
  const { x, y } = asked;
  if (x <= spareX && y <= spareY) return { x, y };
  throw new NoPictureError(
    `${has}, and in ${size.width} x ${size.height} its place is at most ${spareX} from the left and ${spareY} from the top, not ${x} and ${y}`,
  );
}

/** The larger picture. The pixels of the edge go on around it, so that even a low strength begins from its colours. */
export function continued({ data, ...picture }: Pixels, size: Size, { x, y }: PlaceInPicture): Pixels {
  const larger = new Uint8Array(size.width * size.height * 3);
  const within = (at: number, edge: number): number => Math.min(edge - 1, Math.max(0, at));
  for (let row = 0, to = 0; row < size.height; row++) {
    const line = within(row - y, picture.height) * picture.width;
    for (let column = 0; column < size.width; column++, to += 3) {
      const from = (line + within(column - x, picture.width)) * 3;
      larger[to] = data[from];
      larger[to + 1] = data[from + 1];
      larger[to + 2] = data[from + 2];
    }
  }
  return { ...size, data: larger };
}

/** The mask of what is around a picture. */
export function maskAround(size: Size, picture: Size, { x, y }: PlaceInPicture): Pixels {
  const mask: Pixels = { ...size, data: new Uint8Array(size.width * size.height).fill(255) };
  for (let row = y; row < y + picture.height; row++)
    mask.data.fill(0, row * size.width + x, row * size.width + x + picture.width);
  return mask;
}
