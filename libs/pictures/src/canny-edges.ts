import type { Pixels } from './pixels';

/** Gradients above `high` are edges, and those above `low` beside one: what ControlNets were trained with. */
const thresholds = { low: 100, high: 200 };
/** Tangents of 22.5 and 67.5 degrees, between the four directions of an edge. */
const [flat, steep] = [Math.tan(Math.PI / 8), Math.tan((3 * Math.PI) / 8)];

/**
 * The edges of a picture, in white on black. Source: Canny, "A computational approach to edge detection", 1986, as
 * OpenCV's `Canny(image, 100, 200)` has it: gradients of 3 x 3 Sobel kernels, of each pixel in the channel where they
 * are largest, as sums of absolute values, and no blur before.
 */
export function cannyEdges({ width, height, data }: Pixels): Pixels {
  const gradients = sobel(width, height, data);
  const [isThin, isEdge] = [new Uint8Array(width * height), new Uint8Array(width * height)];
  const open: number[] = [];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const at = y * width + x;
      if (gradients.size[at] <= thresholds.low || !isLargest(gradients, width, height, x, y)) continue;
      isThin[at] = 1;
      if (gradients.size[at] <= thresholds.high) continue;
      isEdge[at] = 1;
      open.push(at);
    }
  // Each pixel is taken once, so this ends.
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const [x, y] = [at % width, Math.floor(at / width)];
    for (let v = Math.max(0, y - 1); v <= Math.min(height - 1, y + 1); v++)
      for (let u = Math.max(0, x - 1); u <= Math.min(width - 1, x + 1); u++) {
        const beside = v * width + u;
        if (!isThin[beside] || isEdge[beside]) continue;
        isEdge[beside] = 1;
        open.push(beside);
      }
  }
  const edges = new Uint8Array(width * height * 3);
  for (const [at, edge] of isEdge.entries()) if (edge) edges.fill(255, at * 3, at * 3 + 3);
  return { width, height, data: edges };
}

interface Gradients {
  x: Int16Array;
  y: Int16Array;
  size: Int16Array;
}

/** Each pixel's; beyond the border the border's pixels repeat. */
function sobel(width: number, height: number, data: Uint8Array): Gradients {
  const count = width * height;
  const found = { x: new Int16Array(count), y: new Int16Array(count), size: new Int16Array(count).fill(-1) };
  for (let y = 0; y < height; y++) {
    const rows = [Math.max(0, y - 1), y, Math.min(height - 1, y + 1)].map((row) => row * width);
    for (let x = 0; x < width; x++) {
      const [left, right] = [Math.max(0, x - 1), Math.min(width - 1, x + 1)];
      const at = y * width + x;
      for (let channel = 0; channel < 3; channel++) {
        const value = (row: number, column: number): number => data[(rows[row] + column) * 3 + channel];
        const [nw, ne, sw, se] = [value(0, left), value(0, right), value(2, left), value(2, right)];
        const dx = ne - nw + 2 * (value(1, right) - value(1, left)) + se - sw;
        const dy = sw - nw + 2 * (value(2, x) - value(0, x)) + se - ne;
        const size = Math.abs(dx) + Math.abs(dy);
        if (size <= found.size[at]) continue;
        found.x[at] = dx;
        found.y[at] = dy;
        found.size[at] = size;
      }
    }
  }
  return found;
}

/** Non-maximum suppression: whether a gradient is the largest across its edge. */
function isLargest({ x: dx, y: dy, size }: Gradients, width: number, height: number, x: number, y: number): boolean {
  const at = y * width + x;
  const sizeAt = (u: number, v: number): number =>
    u < 0 || v < 0 || u >= width || v >= height ? 0 : size[v * width + u];
  const [alongX, alongY] = [Math.abs(dx[at]), Math.abs(dy[at])];
  if (alongY < alongX * flat) return size[at] > sizeAt(x - 1, y) && size[at] >= sizeAt(x + 1, y);
  if (alongY > alongX * steep) return size[at] > sizeAt(x, y - 1) && size[at] >= sizeAt(x, y + 1);
  const side = dx[at] < 0 !== dy[at] < 0 ? -1 : 1;
  return size[at] > sizeAt(x - side, y - 1) && size[at] > sizeAt(x + side, y + 1);
}
