import type { Device } from '@app/diffusion';
import type { Figure } from '../section';
import type { Making } from './models';

/** Tools of every section. */
export interface GpuBench extends Making {
  device: Device;
  /** An interpreter with torch and diffusers. */
  python?: string;
  /** When the section is ended, in milliseconds of `Date.now`. */
  until: number;
  /** Adds to the page: a ratio, or a sentence. What was told stays if the section ends badly. */
  tell: (told: Figure | string) => void;
}

/** What `npm run bench -- --gpu` measures in a process of its own. */
export interface GpuSection {
  /** For `--only`. */
  name: string;
  title: string;
  /** In Markdown. */
  about: string;
  /** Most that it may take. */
  seconds: number;
  /** Whether it does without the models of random values. */
  needsNoModels?: true;
  /** Whether the device cannot be measured at all where it ends badly. */
  isRequired?: true;
  /** Of its process. */
  env?: Readonly<Record<string, string>>;
  measure(bench: GpuBench): Promise<void>;
}

export const secondsLeft = ({ until }: Pick<GpuBench, 'until'>): number => (until - Date.now()) / 1000;

/** Of a picture, in pixels: tiny models have small ones. */
export const edgeOf = ({ size }: Pick<GpuBench, 'size'>, pixels: number): number => (size === 'tiny' ? 64 : pixels);

export const inMs = (ms: number): string => `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;

export const namedRows = (count: number): string => `${count} ${count === 1 ? 'row' : 'rows'}`;

/** Says which outputs mean nothing: random weights may overflow in half precision, and times stay what they are. */
export function tellUnlessFinite({ tell }: GpuBench, named: string, outputs: readonly Float32Array[]): void {
  if (!outputs.every((output) => output.every(Number.isFinite))) tell(`**Not all values of ${named} are finite.**`);
}
