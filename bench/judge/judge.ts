import type { Fit } from './fit';
import { fitShape } from './fit';
import type { Mask } from './regions';
import { areaOf, centroid, components, erode, fill, holes } from './regions';
import { eachPixel, glossyColor, groundColor, isMark } from './render';
import type { Item, Picture, Rgb, Scene } from './scenes';
import { colors } from './scenes';

// Cached, because these functions run for every pixel.
const { min, max, abs } = Math;

/** Largest difference of a colour channel, of 255. */
const colorTolerance = 30;
/** Share of the ground that must have the right colour; the rest are edges of its marks. */
const groundShare = 0.85;
/** Smallest overlap of an outline with the true one. */
export const minOverlap = 0.85;
/** Regions that are smaller or thinner than this, in pixels, are ignored as specks. */
const speck = { area: 200, erosions: 2 };
/** Largest share of a hole in a glossy object that counts as its highlight on a light ground. */
const highlightShare = 0.15;
/** Share of an inner object that must lie within the outer one's outline. */
const withinShare = 0.97;
/** Smallest distance for "above" or "left of", in short sides. */
const minDistance = 0.15;
/** Range of a size relative to the caption's. */
const sizeRange = [0.75, 1.3];

/** Errors of a picture; empty if it is right. */
export interface Verdict {
  problems: string[];
  /** The worst overlap of an outline with its true shape, 0..1; 0 if the number of objects is wrong. */
  overlap: number;
}

/** A connected region of one colour; `filled` includes its holes. */
interface Region {
  mask: Mask;
  filled: Mask;
}

/** An item of the scene and its region in the picture. */
interface Match {
  item: Item;
  region: Region;
  silhouette: Mask;
  fit: Fit;
}

/**
 * Checks whether a picture shows its scene: colours of ground and objects, number and positions of
 * the regions, outlines.
 */
export function judge(scene: Scene, picture: Picture): Verdict {
  const { width, height } = picture;
  const masks = classify(scene, picture);
  const problems: string[] = [];
  let overlap = 1;
  const placed: Match[] = [];
  for (const [color, mask] of masks) {
    const items = scene.items.filter((item) => item.color === color);
    const regions = regionsOf(mask, items, scene, width, height);
    if (regions.length !== items.length) {
      problems.push(`number: ${regions.length} ${color} of ${items.length}`);
      overlap = 0;
      continue;
    }
    for (const match of assign(scene, items, regions, width, height)) {
      overlap = min(overlap, match.fit.overlap);
      if (match.fit.overlap < minOverlap) problems.push(`outline: ${match.item.shape} ${match.fit.overlap.toFixed(2)}`);
      const difference = colorDifference(match, picture);
      if (difference > colorTolerance) problems.push(`color: ${color} is off by ${Math.round(difference)}`);
      placed.push(match);
    }
  }
  if (placed.length === scene.items.length) problems.push(...placeProblems(scene, placed));
  const share = rightGround(scene, picture, masks);
  if (share < groundShare) problems.push(`ground: ${Math.round(share * 100)} % right`);
  return { problems, overlap };
}

/**
 * Assigns every pixel to the ground or to the object with the nearest colour.
 * @returns a mask for each colour of an object.
 */
function classify(scene: Scene, { data, width, height }: Picture): Map<string, Mask> {
  const names = [...new Set(scene.items.map(({ color }) => color))];
  const variants = names.map((name) => {
    const isGlossy = scene.items.some(({ color, finish }) => color === name && finish === 'glossy');
    return isGlossy ? [...glossyVariants(name)] : [colors[name]];
  });
  const masks = new Map(names.map((name) => [name, new Uint8Array(width * height)]));
  const objects = [...masks.values()].map((mask, index) => ({ mask, variants: variants[index] }));
  const hasMarks = scene.kind === 'striped' || scene.kind === 'dotted';
  eachPixel(width, height, (index, _x, _y, down) => {
    const start = index * 3;
    let least = squaredDistance(data, start, groundColor(scene, down));
    if (hasMarks) least = min(least, squaredDistance(data, start, groundColor(scene, down, true)));
    let nearest: Mask | undefined;
    for (const { mask, variants } of objects)
      for (const variant of variants) {
        const distance = squaredDistance(data, start, variant);
        if (distance >= least) continue;
        least = distance;
        nearest = mask;
      }
    if (nearest) nearest[index] = 1;
  });
  return masks;
}

function* glossyVariants(name: string): Generator<Rgb> {
  for (const y of [-1, -0.5, 0, 0.5, 1]) for (const x of [-0.35, 0, 0.3, 1]) yield glossyColor(name, x, y);
}

/** Of the pixel at `start` from a colour. */
const squaredDistance = (data: Uint8Array, start: number, color: Rgb): number =>
  (data[start] - color[0]) ** 2 + (data[start + 1] - color[1]) ** 2 + (data[start + 2] - color[2]) ** 2;

/** The regions of one colour, without specks; a region inside another is part of it if the scene allows that. */
function regionsOf(mask: Mask, items: readonly Item[], scene: Scene, width: number, height: number): Region[] {
  const found = components(mask, width, height).filter(
    ({ mask: part, area }) =>
      area >= speck.area && erode(part, width, height, speck.erosions).some((value) => value === 1),
  );
  const mayNest = items.some(({ shape, finish }) => shape === 'ring' && finish === 'outlined') || isOuter(scene, items);
  const regions: Region[] = [];
  for (const { mask: part } of found) {
    const around = mayNest && regions.find(({ filled }) => part.every((value, index) => !value || filled[index]));
    if (around) around.mask = fill(around.mask, [{ mask: part }]);
    else regions.push({ mask: part, filled: fill(part, holes(part, width, height)) });
  }
  return regions;
}

/** Whether an item of this colour has another inside. */
const isOuter = (scene: Scene, items: readonly Item[]): boolean =>
  scene.relation === 'inside' && items.includes(scene.items[1]);

/** Pairs items with regions so that the outlines overlap best. */
function assign(
  scene: Scene,
  items: readonly Item[],
  regions: readonly Region[],
  width: number,
  height: number,
): Match[] {
  const isAround = isOuter(scene, items);
  const fits = items.map((item) =>
    regions.map((region): Match => {
      const silhouette = isAround ? region.filled : silhouetteOf(item, region, width, height);
      return { item, region, silhouette, fit: fitShape(item.shape, silhouette, width, height) };
    }),
  );
  const isUniform = items.every(({ shape, finish }) => shape === items[0].shape && finish === items[0].finish);
  if (items.length !== 2 || isUniform) return items.map((_, index) => fits[index][index]);
  const [straight, crossed] = [
    [fits[0][0], fits[1][1]],
    [fits[0][1], fits[1][0]],
  ];
  const worst = (matches: readonly Match[]): number => min(...matches.map(({ fit }) => fit.overlap));
  return worst(straight) >= worst(crossed) ? straight : crossed;
}

/** The area of an item, from its outline. */
function silhouetteOf({ shape, finish }: Item, { mask, filled }: Region, width: number, height: number): Mask {
  if (shape === 'ring') {
    const centre = holes(mask, width, height).find(({ mask: hole }) => isCentral(hole, filled, width));
    return centre ? filled.map((value, index) => value & (1 - centre.mask[index])) : filled;
  }
  if (finish === 'outlined') return filled;
  if (finish !== 'glossy') return mask;
  const size = areaOf(filled);
  return fill(
    mask,
    holes(mask, width, height).filter(({ area }) => area <= highlightShare * size),
  );
}

function isCentral(hole: Mask, filled: Mask, width: number): boolean {
  const { x, y } = centroid(filled, width);
  return hole[Math.round(y) * width + Math.round(x)] === 1;
}

/** The largest channel difference in the median of a region's pixels. */
function colorDifference({ item, region, fit }: Match, { data, width, height }: Picture): number {
  const inner = erode(region.mask, width, height, 3);
  const differences: number[][] = [[], [], []];
  eachPixel(width, height, (index, x, y) => {
    if (!inner[index]) return;
    const wanted =
      item.finish === 'glossy' ? glossyColor(item.color, (x - fit.x) / fit.r, (y - fit.y) / fit.r) : colors[item.color];
    for (let channel = 0; channel < 3; channel++)
      differences[channel].push(data[index * 3 + channel] - wanted[channel]);
  });
  return max(...differences.map((values) => abs(median(values))));
}

function placeProblems({ mode, relation, items }: Scene, placed: readonly Match[]): string[] {
  const [first, second] = items.map((item) => placed.find((match) => match.item === item)!);
  if (mode === 'one') {
    const ratio = first.fit.r / items[0].r;
    return ratio < sizeRange[0] || ratio > sizeRange[1] ? [`size: ${ratio.toFixed(2)} of what was said`] : [];
  }
  if (mode === 'many' || relation === 'and') return [];
  if (relation === 'inside') {
    const inner = first.silhouette;
    const outer = second.region.filled;
    const within = inner.reduce((sum, value, index) => sum + (value & outer[index]), 0);
    return within >= withinShare * areaOf(inner) ? [] : ['place: it is not inside'];
  }
  const [dx, dy] = [second.fit.x - first.fit.x, second.fit.y - first.fit.y];
  const ahead = { above: dy, below: -dy, 'left of': dx, 'right of': -dx }[relation!];
  return ahead > minDistance ? [] : [`place: it is not ${relation}`];
}

/** Share of the ground, away from objects, that has the right colour. */
function rightGround(scene: Scene, { data, width, height }: Picture, masks: ReadonlyMap<string, Mask>): number {
  const ground = new Uint8Array(width * height).fill(1);
  for (const mask of masks.values())
    for (let index = 0; index < mask.length; index++) if (mask[index]) ground[index] = 0;
  const free = erode(ground, width, height, 4);
  let [right, all] = [0, 0];
  eachPixel(width, height, (index, x, y, down) => {
    if (!free[index]) return;
    const wanted = groundColor(scene, down, isMark(scene.kind, x, y));
    all++;
    if (wanted.every((value, channel) => abs(data[index * 3 + channel] - value) <= colorTolerance)) right++;
  });
  return all > 0 ? right / all : 0;
}

function median(values: number[]): number {
  if (values.length === 0) return Infinity;
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
