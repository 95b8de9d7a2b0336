import type { GroundKind, Item, Picture, Place, Rgb, Scene, Shape } from './scenes';
import { colors, sizeOf } from './scenes';

// Cached, because these functions run for every pixel.
const { abs, atan2, cos, hypot, max, min, sign, sin, sqrt, round, exp } = Math;

/** Line width of outlined objects, in short sides. */
const line = 0.032;
/** What no shape of radius 1 reaches beyond, its soft edge in a picture of 512 pixels included. */
const reach = 1.3;

/**
 * Signed distance to a shape of radius 1, negative inside; y points down.
 */
const distances: Readonly<Record<Shape, (x: number, y: number) => number>> = {
  circle: (x, y) => hypot(x, y) - 1,
  ring: (x, y) => abs(hypot(x, y) - 0.75) - 0.25,
  square: (x, y) => max(abs(x), abs(y)) - 0.85,
  diamond: (x, y) => (abs(x) * 1.2 + abs(y) - 1.08) / hypot(1.2, 1),
  cross: (x, y) => {
    const [ax, ay, long, short] = [abs(x), abs(y), 0.95, 0.32];
    return min(max(ax - long, ay - short), max(ax - short, ay - long));
  },
  triangle: (x, y) => max((abs(x) * sqrt(3)) / 2 - y / 2 - 0.5, y - 0.6),
  hexagon: (x, y) => max(abs(x), abs(x) * 0.5 + (abs(y) * sqrt(3)) / 2) - 0.9,
  star: (x, y) => {
    const sector = (2 * Math.PI) / 5;
    const angle = abs(modulo(atan2(x, -y) + sector / 2, sector) - sector / 2);
    const radius = hypot(x, y);
    const [outer, inner] = [1.08, 0.45];
    const edge = [inner * cos(sector / 2) - outer, inner * sin(sector / 2)];
    const point = [radius * cos(angle) - outer, radius * sin(angle)];
    return (point[0] * edge[1] - point[1] * edge[0]) / hypot(...edge);
  },
  heart: (x, y) => {
    const k = 1.55;
    const [hx, hy] = [abs(x) / k, 0.5 - y / k];
    if (hx + hy > 1) return (hypot(hx - 0.25, hy - 0.75) - Math.SQRT2 / 4) * k;
    const m = 0.5 * max(hx + hy, 0);
    return min(hypot(hx, hy - 1), hypot(hx - m, hy - m)) * sign(hx - hy) * k;
  },
  moon: (x, y) => max(hypot(x, y) - 1, 0.82 - hypot(x - 0.45, y + 0.12)),
};

const modulo = (value: number, by: number): number => ((value % by) + by) % by;

/** Signed distance of a point to the outline of an item, in short sides. */
export function distanceTo(item: Place & { shape: Shape }, x: number, y: number): number {
  return item.r * distances[item.shape]((x - item.x) / item.r, (y - item.y) / item.r);
}

/** Whether a point is on the marks of a ground. */
export function isMark(kind: GroundKind, x: number, y: number): boolean {
  if (kind === 'striped') return abs(modulo(x + y, 0.25) - 0.125) < 0.0625;
  if (kind === 'dotted') return hypot(modulo(x, 0.1875) - 0.09375, modulo(y, 0.1875) - 0.09375) < 0.045;
  return false;
}

/** Colour of the ground, 0..255, at the fraction `down` of the way from the top. */
export function groundColor({ ground, kind }: Pick<Scene, 'ground' | 'kind'>, down: number, mark = false): Rgb {
  if (kind !== 'gradient' && !mark) return colors[ground];
  const low = (value: number): number => value * 0.55 + (ground === 'black' ? 56 : 0);
  return each(colors[ground], (value) => {
    const here = kind === 'gradient' ? value + (low(value) - value) * down : value;
    return mark ? here * 0.65 + 20 : here;
  });
}

/** Colour of a glossy item at a point, in radii from its centre. */
export function glossyColor(color: string, x: number, y: number): Rgb {
  const shade = 1 - 0.35 * min(1, max(0, (y + 1) / 2));
  const light = 255 * 0.55 * exp(-((x + 0.35) ** 2 + (y + 0.4) ** 2) / 0.1);
  return each(colors[color], (value) => min(255, value * shade + light));
}

/** Calls `paint(index, x, y, down)` for every pixel; x and y in short sides from the centre. */
export function eachPixel(
  width: number,
  height: number,
  paint: (index: number, x: number, y: number, down: number) => void,
): void {
  const short = min(width, height);
  for (let row = 0, index = 0; row < height; row++)
    for (let column = 0; column < width; column++, index++)
      paint(index, (column + 0.5 - width / 2) / short, (row + 0.5 - height / 2) / short, row / (height - 1));
}

/** Draws a scene exactly. @param scale of the picture's edges, for a smaller one */
export function render(scene: Scene, scale = 1): Picture {
  const [width, height] = sizeOf[scene.format].map((edge) => edge * scale);
  const data = new Uint8Array(width * height * 3);
  // Inner objects are drawn over outer ones.
  const layers = scene.relation === 'inside' ? [...scene.items].reverse() : scene.items;
  eachPixel(width, height, (index, x, y, down) => {
    const ground = groundColor(scene, down, isMark(scene.kind, x, y));
    const pixel = layers.reduce((below, item) => over(below, item, x, y, min(width, height)), ground);
    data.set(each(pixel, round), index * 3);
  });
  return { data, width, height };
}

/** The colour of a point with an item drawn over it. @param short side of the picture in pixels. */
function over(below: Rgb, item: Item, x: number, y: number, short: number): Rgb {
  if (max(abs(x - item.x), abs(y - item.y)) > reach * item.r) return below;
  const distance = distanceTo(item, x, y);
  const edge = item.finish === 'outlined' ? abs(distance + line / 2) - line / 2 : distance;
  const cover = min(1, max(0, 0.5 - (edge * short) / 1.5));
  if (cover === 0) return below;
  const isGlossy = item.finish === 'glossy';
  const color = isGlossy ? glossyColor(item.color, (x - item.x) / item.r, (y - item.y) / item.r) : colors[item.color];
  return each(below, (value, channel) => value + (color[channel] - value) * cover);
}

function each(color: Rgb, change: (value: number, channel: number) => number): Rgb {
  return [change(color[0], 0), change(color[1], 1), change(color[2], 2)];
}
