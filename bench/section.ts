/** A ratio of two things that were measured in one run, in turns. */
export interface Figure {
  name: string;
  /** One of each round. */
  ratios: number[];
  goal?: Goal;
  /** Times and rates of this machine. */
  detail?: string;
}

/** The bounds of a ratio. */
export interface Goal {
  atMost?: number;
  atLeast?: number;
}

/** Tools of every section. */
export interface BenchOptions {
  /** Folder of the model. */
  model: string;
  device: 'cpu' | 'webgpu' | `cuda:${number}`;
  /** Threads of one call on the CPU. */
  threads: number;
  /** Folder of a model at full size, for the section of that name. */
  fullSize?: string;
  /** An interpreter with torch, diffusers and transformers. */
  python?: string;
}

/** One thing that `npm run bench` measures. */
export interface Section {
  /** Name for `--only`. */
  name: string;
  title: string;
  /** Dividend and divisor, in Markdown. */
  about: string;
  /** Rounds that count, unless others are asked for. */
  rounds: number;
  measure(options: BenchOptions & { rounds: number }): Promise<Figure[]>;
}

export function figure(name: string, ratios: number[], goal?: Goal): Figure {
  return { name, ratios, ...(goal && { goal }) };
}

/** The ratio of each round. */
export function ratios(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, round) => value / below[round]);
}

/** The middle of some measurements; between the two middle ones where their number is even. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which this share (0 to 1) of the measurements lies, between two of them where none lies there. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place - Math.floor(place));
}

/**
 * Measures each side once a round, in the opposite order every other round, so that a machine that slows
 * down affects all of them. Round 0 warms up.
 * @returns what each side gave in each round, without round 0
 */
export async function interleave<S extends Record<string, (round: number) => Promise<unknown>>>(
  sides: S,
  rounds: number,
  { warmUp = true } = {},
): Promise<{ [K in keyof S]: Awaited<ReturnType<S[K]>>[] }> {
  const names = Object.keys(sides);
  const results: Record<string, unknown[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = warmUp ? 0 : 1; round <= rounds; round++)
    for (const name of round % 2 === 0 ? names : [...names].reverse()) {
      const result = await sides[name](round);
      if (round > 0) results[name].push(result);
    }
  return results as { [K in keyof S]: Awaited<ReturnType<S[K]>>[] };
}

/** Times of some work, in milliseconds. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Milliseconds of processors that some work takes in this process, whatever else the machine does. */
export async function processorMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Random numbers in [0, 1) from a seed (mulberry32, T. Ettinger). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
