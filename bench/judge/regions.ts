// Cached, because these functions run for every pixel.
const { floor } = Math;
/** A set of pixels, row by row: 1 for a pixel that belongs to it, else 0. */
export type Mask = Uint8Array;

/** A connected part of a mask, and its number of pixels. */
export interface Part {
  mask: Mask;
  area: number;
}

/** The connected parts of a mask (8-neighbourhood), largest first. */
export function components(mask: Mask, width: number, height: number): Part[] {
  const label = new Int32Array(mask.length);
  const found: Part[] = [];
  const open = new Int32Array(mask.length);
  for (let start = 0; start < mask.length; start++) {
    if (!mask[start] || label[start]) continue;
    const part = new Uint8Array(mask.length);
    let [next, end] = [0, 1];
    open[0] = start;
    label[start] = found.length + 1;
    while (next < end) {
      const index = open[next++];
      part[index] = 1;
      eachNeighbour(index, width, height, (near) => {
        if (!mask[near] || label[near]) return;
        label[near] = found.length + 1;
        open[end++] = near;
      });
    }
    found.push({ mask: part, area: end });
  }
  return found.sort((a, b) => b.area - a.area);
}

/** A mask without its outermost pixels, repeated `times`. */
export function erode(mask: Mask, width: number, height: number, times: number): Mask {
  let current = mask;
  for (let time = 0; time < times; time++) {
    const next = current.slice();
    for (let index = 0; index < current.length; index++) {
      if (!current[index]) continue;
      const column = index % width;
      const inner =
        column > 0 &&
        column < width - 1 &&
        index >= width &&
        index < current.length - width &&
        current[index - 1] &&
        current[index + 1] &&
        current[index - width] &&
        current[index + width];
      if (!inner) next[index] = 0;
    }
    current = next;
  }
  return current;
}

/** The holes of a mask, largest first. */
export function holes(mask: Mask, width: number, height: number): Part[] {
  const outside = mask.map((value) => 1 - value);
  return components(outside, width, height).filter(({ mask: part }) => !touchesBorder(part, width, height));
}

/** A mask with some of its holes filled. */
export function fill(mask: Mask, parts: readonly Pick<Part, 'mask'>[]): Mask {
  const filled = mask.slice();
  for (const part of parts) for (let i = 0; i < filled.length; i++) filled[i] |= part.mask[i];
  return filled;
}

export function areaOf(mask: Mask): number {
  let area = 0;
  for (const value of mask) area += value;
  return area;
}

/** The mean position of a mask, in pixels. */
export function centroid(mask: Mask, width: number): { x: number; y: number } {
  let [x, y, area] = [0, 0, 0];
  for (let index = 0; index < mask.length; index++) {
    if (!mask[index]) continue;
    x += index % width;
    y += floor(index / width);
    area++;
  }
  return { x: x / area, y: y / area };
}

function touchesBorder(mask: Mask, width: number, height: number): boolean {
  for (let x = 0; x < width; x++) if (mask[x] || mask[(height - 1) * width + x]) return true;
  for (let y = 0; y < height; y++) if (mask[y * width] || mask[y * width + width - 1]) return true;
  return false;
}

function eachNeighbour(index: number, width: number, height: number, visit: (near: number) => void): void {
  const [column, row] = [index % width, floor(index / width)];
  for (let dy = -1; dy <= 1; dy++)
    for (let dx = -1; dx <= 1; dx++) {
      const [x, y] = [column + dx, row + dy];
      if ((dx || dy) && x >= 0 && y >= 0 && x < width && y < height) visit(y * width + x);
    }
}
