/** Edges of a picture in pixels. */
export interface PictureSize {
  width: number;
  height: number;
}

export type AspectRatio = 'square' | 'portrait' | 'landscape';

/** What decides the sizes that a model draws. */
export interface SizeRules {
  /** Edge in pixels of the square pictures that it was trained on. */
  edge: number;
  /** Each edge of a picture is a multiple of it. */
  multiple: number;
  maxPixels: number;
}

/** Pixels that a model draws at most where its `darkroom.json` does not say, as a multiple of those of its square. */
export const mostAreas = 4;

/** No shape is longer on one edge than so many times the other. */
const steepestShape = 4;

/** A picture that is drawn from keeps its size within these multiples of a model's area. */
const keptAreas = { min: 0.5, max: 1.5 };

/** Portraits of common edges; those of others have the area of the square and two thirds of the height as width. */
const portraits: Readonly<Record<number, PictureSize>> = {
  512: { width: 512, height: 768 },
  // Source: the sizes that Stable Diffusion XL was trained on (Podell et al. 2023, appendix I).
  1024: { width: 832, height: 1216 },
};

const rounded = (length: number, multiple: number): number =>
  Math.max(multiple, Math.round(length / multiple) * multiple);

/** The size in pixels of a picture of a model whose square ones have this edge. */
export function sizeOfPicture(edge: number, ratio: AspectRatio): PictureSize {
  if (ratio === 'square') return { width: edge, height: edge };
  const { width, height } = portraits[edge] ?? {
    width: rounded(edge * Math.sqrt(2 / 3), 64),
    height: rounded(edge * Math.sqrt(3 / 2), 64),
  };
  return ratio === 'portrait' ? { width, height } : { width: height, height: width };
}

/**
 * The size of a shape at a model's area. Each edge is rounded alone, which is nearest to shape and area alike. A
 * steeper shape than 4:1 becomes that.
 */
export function sizeOfShape({ edge, multiple }: Omit<SizeRules, 'maxPixels'>, shape: PictureSize): PictureSize {
  const ratio = Math.min(steepestShape, Math.max(1 / steepestShape, shape.width / shape.height));
  return { width: rounded(edge * Math.sqrt(ratio), multiple), height: rounded(edge / Math.sqrt(ratio), multiple) };
}

/**
 * The size at which a model draws from a picture, where nothing else says: its own, if it has such edges and about the
 * model's area, else that of its shape.
 */
export function sizeDrawnFrom(rules: Omit<SizeRules, 'maxPixels'>, { width, height }: PictureSize): PictureSize {
  const areas = (width * height) / rules.edge ** 2;
  const isDrawn = [width, height].every((edge) => edge % rules.multiple === 0);
  const isKept = isDrawn && areas >= keptAreas.min && areas <= keptAreas.max;
  const own = { width, height };
  return isKept && Math.max(width / height, height / width) <= steepestShape ? own : sizeOfShape(rules, own);
}

/** What is wrong with each edge of a size that is asked for, as the end of a sentence that names the nearest. */
export function problemsOfSize(rules: SizeRules, size: PictureSize): { edge: keyof PictureSize; problem: string }[] {
  const { multiple, maxPixels } = rules;
  const wrong = (['width', 'height'] as const).filter((edge) => size[edge] % multiple !== 0);
  if (wrong.length > 0)
    return wrong.map((edge) => {
      const below = size[edge] - (size[edge] % multiple);
      const nearest = `the nearest are ${below} and ${below + multiple}`;
      return { edge, problem: `must be a multiple of ${multiple} with this model, got ${size[edge]}; ${nearest}` };
    });
  const { width, height } = size;
  if (width * height <= maxPixels) return [];
  const scale = Math.sqrt(maxPixels / (width * height));
  const [w, h] = [width, height].map((length) => Math.max(1, Math.floor((length * scale) / multiple)) * multiple);
  const most = `this model draws at most ${maxPixels}; of this shape that is ${w} x ${h}`;
  return [{ edge: 'width', problem: `and "height" make ${width * height} pixels, and ${most}` }];
}
