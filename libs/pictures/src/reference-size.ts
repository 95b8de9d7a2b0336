import { NoPictureError } from './picture-error';
import type { Size } from './pixels';

/** What FLUX.2 was trained to look at, in pixels. Source: `Flux2ImageProcessor` of diffusers. */
const most = { area: 1024 ** 2, ratio: 8 };
const least = 64;
/** A token is of so many pixels on each edge. */
const multiple = 16;

/**
 * The size to which a picture that a model looks at is scaled, and the part in its middle that is looked at. Source:
 * `Flux2KleinPipeline` of diffusers.
 * @throws NoPictureError for one that is too small or too long
 */
export function referenceSize({ width, height }: Size): { scaled: Size; part: Size & { left: number; top: number } } {
  const refuse = (needed: string): never => {
    throw new NoPictureError(`has ${width} x ${height} pixels, and ${needed} in a picture that is looked at`);
  };
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  if (short < least) refuse(`at least ${least} on each edge are needed`);
  if (long > short * most.ratio) refuse(`at most ${most.ratio} on one edge for each on the other are taken`);
  const scale = Math.min(1, Math.sqrt(most.area / (width * height)));
  const scaled = { width: Math.trunc(width * scale), height: Math.trunc(height * scale) };
  const seen = { width: scaled.width - (scaled.width % multiple), height: scaled.height - (scaled.height % multiple) };
  const [left, top] = [(scaled.width - seen.width) >> 1, (scaled.height - seen.height) >> 1];
  return { scaled, part: { left, top, ...seen } };
}

/** How many tokens a picture is that a model looks at. @throws NoPictureError as `referenceSize` does */
export function referenceTokens(size: Size): number {
  const { width, height } = referenceSize(size).part;
  return (width / multiple) * (height / multiple);
}
