import { Generator } from './generator';
import { seedSequence } from './seed-sequence';

const { fround } = Math;

/** Size of numpy's entropy pool, and decimals of a time, as k-diffusion asks for. */
const poolSize = 24;
const decimals = 6;

/** A part of the whole interval; its halves once it was split. */
interface Interval {
  start: number;
  end: number;
  spawnKey: number;
  depth: number;
  halves?: { middle: number; left: Interval; right: Interval };
}

/**
 * A Brownian motion that is the same wherever and in whatever order it is asked for: halving the interval down to the
 * asked times gives each half the noise of a seed of its own.
 * Source: torchsde's BrownianInterval with `halfway_tree`, as diffusers' BrownianTreeNoiseSampler uses it; Li et al.,
 * "Scalable Gradients for Stochastic Differential Equations" (2020), section 4.
 */
export class BrownianInterval {
  private readonly top: Interval;
  private readonly increment: Float32Array;

  /** @param size number of independent motions */
  constructor(
    private readonly seed: number,
    start: number,
    end: number,
    private readonly size: number,
  ) {
    this.top = { start: rounded(start), end: rounded(end), spawnKey: 0, depth: 0 };
    const [seedOfWhole] = seedSequence(seed, [], poolSize, 1);
    this.increment = scaled(new Generator(seedOfWhole).randn(size), Math.sqrt(end - start));
  }

  /** The increments from time `from` to `to`, which is later; times outside the interval are taken to its ends. */
  between(from: number, to: number): Float32Array {
    const clamp = (time: number) => rounded(Math.min(this.top.end, Math.max(this.top.start, time)));
    const [start, end] = [clamp(from), clamp(to)];
    const sum = new Float32Array(this.size);
    if (start < end) this.add(sum, this.top, this.increment, start, end);
    return sum;
  }

  /** Adds the increments of what `interval` has of the asked times. Its depth is bounded by the decimals of a time. */
  private add(sum: Float32Array, interval: Interval, increment: Float32Array, from: number, to: number): void {
    if (from <= interval.start && to >= interval.end) {
      for (let i = 0; i < sum.length; i++) sum[i] += increment[i];
      return;
    }
    const { middle, left, right } = (interval.halves ??= halve(interval));
    const leftIncrement = this.leftIncrement(interval, middle, increment);
    if (from < middle) this.add(sum, left, leftIncrement, from, to);
    if (to > middle) this.add(sum, right, difference(increment, leftIncrement), from, to);
  }

  /** The Brownian bridge: the increment of the left half, given that of the whole. */
  private leftIncrement({ start, end, spawnKey, depth }: Interval, middle: number, increment: Float32Array) {
    const [seed] = seedSequence(this.seed, [spawnKey, depth], poolSize, 1);
    const fresh = new Generator(seed).randn(this.size);
    const [left, right] = [middle - start, end - middle];
    const inverse = 1 / (end - start);
    const deviation = Math.sqrt(left * right * inverse);
    return increment.map((value, i) => fround(fround(value * left) * inverse) + fround(fresh[i] * deviation));
  }
}

function halve({ start, end, spawnKey, depth }: Interval): Required<Interval>['halves'] {
  const middle = rounded((start + end) / 2);
  const half = (from: number, to: number, side: number): Interval => ({
    start: from,
    end: to,
    spawnKey: 2 * spawnKey + side,
    depth: depth + 1,
  });
  return { middle, left: half(start, middle, 0), right: half(middle, end, 1) };
}

function rounded(time: number): number {
  return Number(time.toFixed(decimals));
}

function scaled(values: Float32Array, factor: number): Float32Array {
  return values.map((value) => value * factor);
}

function difference(whole: Float32Array, part: Float32Array): Float32Array {
  return whole.map((value, i) => value - part[i]);
}
