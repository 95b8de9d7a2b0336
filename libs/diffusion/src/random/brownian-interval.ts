import { Generator } from './generator';

const { fround } = Math;
const wordSize = 2 ** 32;

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
    const deviation = Math.sqrt(end - start);
    this.increment = new Generator(seedOfWhole).randn(size).map((value) => value * deviation);
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
    if (to > middle) {
      const rightIncrement = increment.map((value, i) => value - leftIncrement[i]);
      this.add(sum, right, rightIncrement, from, to);
    }
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

/**
 * numpy's `SeedSequence(entropy, spawn_key=spawnKey, pool_size=poolSize).generate_state(count)`: seeds that are
 * independent for every spawn key.
 * Source: numpy/random/bit_generator.pyx, after M. E. O'Neill, "Developing a seed_seq Alternative" (2015).
 * @param entropy an integer from 0 to 2^53 - 1, as are those of the spawn key
 */
export function seedSequence(entropy: number, spawnKey: readonly number[], poolSize: number, count: number): number[] {
  const own = words(entropy);
  const padding = spawnKey.length > 0 ? new Array<number>(Math.max(0, poolSize - own.length)).fill(0) : [];
  const input = [...own, ...padding, ...spawnKey.flatMap(words)];

  // 1. The pool takes one word for each place, and then every place is mixed into every other.
  const hash = hasher(0x43b0d7e5, 0x931e8875);
  const pool = Array.from({ length: poolSize }, (_, i) => hash(input[i] ?? 0));
  for (let source = 0; source < poolSize; source++)
    for (let target = 0; target < poolSize; target++)
      if (source !== target) pool[target] = mix(pool[target], hash(pool[source]));

  // 2. What is left of the input is mixed into every place.
  for (const word of input.slice(poolSize))
    for (let target = 0; target < poolSize; target++) pool[target] = mix(pool[target], hash(word));

  // 3. The state, from the pool again and again.
  const output = hasher(0x8b51f9dd, 0x58f38ded);
  return Array.from({ length: count }, (_, i) => output(pool[i % poolSize]) >>> 0);
}

/** The 32-bit words of an integer, the lowest first. */
function words(value: number): number[] {
  return value < wordSize ? [value] : [value % wordSize, Math.floor(value / wordSize)];
}

/** A hash whose constant changes with each call. */
function hasher(start: number, factor: number): (value: number) => number {
  let constant = start;
  return (value) => {
    const mixed = value ^ constant;
    constant = Math.imul(constant, factor);
    const product = Math.imul(mixed, constant);
    return product ^ (product >>> 16);
  };
}

function mix(x: number, y: number): number {
  const difference = Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y);
  return difference ^ ((difference >>> 16) & 0xffff);
}
