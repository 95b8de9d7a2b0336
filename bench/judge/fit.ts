import type { Mask } from './regions';
import { areaOf, centroid } from './regions';
import { distanceTo } from './render';
import type { Place, Shape } from './scenes';

// Cached, because these functions run for every pixel.
const { abs, min } = Math;

/** Best position of a shape, and the intersection's share of the union there. */
export interface Fit extends Place {
  overlap: number;
}

/** Only every second pixel of every second row is read. */
const stride = 2;

/** Step sizes for x, y and the radius. */
const moves = [
  [1, 0, 0],
  [-1, 0, 0],
  [0, 1, 0],
  [0, -1, 0],
  [0, 0, 1],
  [0, 0, -1],
] as const;

/** Moves and scales the true shape over a region until they overlap best. */
export function fitShape(shape: Shape, mask: Mask, width: number, height: number): Fit {
  const short = min(width, height);
  const at = centroid(mask, width);
  const unit = unitOf(shape);
  const r = Math.sqrt(areaOf(mask) / short ** 2 / unit.area);
  const start = {
    x: (at.x + 0.5 - width / 2) / short - unit.x * r,
    y: (at.y + 0.5 - height / 2) / short - unit.y * r,
    r,
  };
  let best: Fit = { ...start, overlap: overlapOf(shape, start, mask, width, height) };
  for (let step = 0.1; step > 0.005;) {
    const tried = moves.map(([dx, dy, dr]): Fit => {
      const place = { x: best.x + dx * step * r, y: best.y + dy * step * r, r: best.r + dr * step * r };
      return { ...place, overlap: overlapOf(shape, place, mask, width, height) };
    });
    const winner = tried.reduce((a, b) => (b.overlap > a.overlap ? b : a));
    if (winner.overlap > best.overlap) best = winner;
    else step /= 2;
  }
  return best;
}

function overlapOf(shape: Shape, place: Place, mask: Mask, width: number, height: number): number {
  const short = min(width, height);
  const item = { shape, ...place };
  let [both, either] = [0, 0];
  for (let row = 0; row < height; row += stride)
    for (let column = 0; column < width; column += stride) {
      const isRegion = mask[row * width + column];
      const [x, y] = [(column + 0.5 - width / 2) / short, (row + 0.5 - height / 2) / short];
      const isNear = abs(x - place.x) < 1.3 * place.r && abs(y - place.y) < 1.3 * place.r;
      const isShape = isNear && distanceTo(item, x, y) < 0 ? 1 : 0;
      both += isRegion & isShape;
      either += isRegion | isShape;
    }
  return both / either;
}

const units = new Map<Shape, Unit>();

/** Area and centroid of a shape of radius 1. */
interface Unit {
  area: number;
  x: number;
  y: number;
}

function unitOf(shape: Shape): Unit {
  const known = units.get(shape);
  if (known) return known;
  const cells = 400;
  let [area, x, y] = [0, 0, 0];
  for (let i = 0; i < cells; i++)
    for (let j = 0; j < cells; j++) {
      const [px, py] = [((i + 0.5) / cells - 0.5) * 2.6, ((j + 0.5) / cells - 0.5) * 2.6];
      if (distanceTo({ shape, x: 0, y: 0, r: 1 }, px, py) >= 0) continue;
      area++;
      x += px;
      y += py;
    }
  const unit = { area: (area * 2.6 ** 2) / cells ** 2, x: x / area, y: y / area };
  units.set(shape, unit);
  return unit;
}
