/** A ratio of two things measured in one run, in turns. */
export interface Figure {
  name: string;
  /** One per round. */
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
  /** Its folder. */
  model: string;
  device: 'cpu' | 'webgpu' | `cuda:${number}`;
  /** Of one call on the CPU. */
  threads: number;
  /** Model folder for the section of that name. */
  fullSize?: string;
  /** An interpreter with torch, diffusers and transformers. */
  python?: string;
}

/** One thing that `npm run bench` measures. */
export interface Section {
  /** For `--only`. */
  name: string;
  title: string;
  /** Dividend and divisor, in Markdown. */
  about: string;
  /** Default number of rounds, without round 0. */
  rounds: number;
  measure(options: BenchOptions & { rounds: number }): Promise<Figure[]>;
}

export function figure(name: string, ratios: number[], goal?: Goal): Figure {
  return { name, ratios, ...(goal && { goal }) };
}

/** Figures as a table of Markdown. */
export function tableOf(figures: readonly Figure[]): string[] {
  const rows = [['', 'ratio', 'rounds', 'goal', ''], ['-', '-', '-', '-', '-'], ...figures.map(cellsOf)];
  return rows.map((cells) => `| ${cells.join(' | ')} |`);
}

function cellsOf({ name, ratios, goal, detail = '' }: Figure): string[] {
  const shown = (value: number) => value.toFixed(value < 10 ? 3 : 1);
  const ratio = median(ratios);
  const isReached = ratio <= (goal?.atMost ?? Infinity) && ratio >= (goal?.atLeast ?? -Infinity);
  const wanted = goal?.atMost === undefined ? `≥ ${goal?.atLeast}` : `≤ ${goal.atMost}`;
  return [
    name,
    `${shown(ratio)} (${shown(Math.min(...ratios))} to ${shown(Math.max(...ratios))})`,
    String(ratios.length),
    goal ? `${wanted}: ${isReached ? 'reached' : '**missed**'}` : '',
    detail,
  ];
}

/** The ratio of each round. */
export function ratios(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, round) => value / below[round]);
}

/** With an even number of values, the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which this share (0 to 1) of the measurements lies, interpolated. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place - Math.floor(place));
}

/**
 * Measures each side once a round, in the opposite order every other round, so that a machine that slows down affects
 * all of them. Round 0 warms up.
 * @returns the results of each side, without round 0
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

/** In milliseconds. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Processor milliseconds of this process, whatever else the machine does. */
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
