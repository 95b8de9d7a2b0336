import { median } from './rounds';
import type { Plot } from './plot';

/** What a ratio should be. */
export interface Goal {
  atMost?: number;
  atLeast?: number;
}

/** A ratio of two things that were measured in one run, in turns. */
export interface Figure {
  name: string;
  /** Median of the rounds. */
  ratio: number;
  /** Smallest and largest of the rounds. */
  range: [number, number];
  rounds: number;
  goal?: Goal;
}

/** What a section found out. */
export interface SectionResult {
  figures: Figure[];
  plots?: Plot[];
}

/** What every section is given. */
export interface BenchOptions {
  /** Folder of the model. */
  model: string;
  /** Threads of one call on the CPU. */
  threads: number;
  /** An interpreter with onnxruntime, torch and diffusers. */
  python?: string;
}

/** One thing that `npm run bench` measures. */
export interface Section {
  /** Name for `--only`. */
  name: string;
  title: string;
  /** What is divided by what, in Markdown. */
  about: string;
  /** Rounds that count, unless others are asked for. */
  rounds: number;
  measure(options: BenchOptions & { rounds: number }): Promise<SectionResult>;
}

/** @param ratios one of each round */
export function figure(name: string, ratios: readonly number[], goal?: Goal): Figure {
  const range: Figure['range'] = [Math.min(...ratios), Math.max(...ratios)];
  return { name, ratio: median(ratios), range, rounds: ratios.length, ...(goal && { goal }) };
}

/** Whether a figure is as it should be; undefined if nothing is asked of it. */
export function isReached({ ratio, goal }: Figure): boolean | undefined {
  if (!goal) return undefined;
  return ratio <= (goal.atMost ?? Infinity) && ratio >= (goal.atLeast ?? -Infinity);
}

/** The ratio of each round. */
export function ratios(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, round) => value / below[round]);
}
