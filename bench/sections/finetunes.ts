import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Drawing } from '../../apps/inference/src/engines/engine';
import { writeLoras } from '../../test/support/loras';
import { BareGraphs } from '../bare-graphs';
import { BenchEngine, firstPicture } from '../bench-engine';
import { type BenchOptions, figure, interleave, median, processorMs, ratios, type Section } from '../section';
import { rowCurveFigures, sharedCalls } from './engine';

/** Requests that are there at once. */
const concurrent = 8;
/** Fine-Tunes whose memory is measured. */
const hundred = 100;
/** Of a usual LoRA. */
const rank = 8;
/** Pictures at full size, which have one row each, and so few steps that a round takes minutes. */
const full = { width: 256, height: 256, guidanceScale: 1, numInferenceSteps: 4 };
/** Smaller ones, of which a hundred take minutes. */
const small = { ...full, width: 128, height: 128 };

export const finetunes: Section = {
  name: 'finetunes',
  title: 'Fine-Tunes',
  about: `Processor time of ${concurrent} pictures of 20 steps that are asked for at once: each of a Fine-Tune of its own that the engine has never seen, divided by all of one that it has drawn with.`,
  rounds: 5,
  async measure({ rounds, ...options }) {
    const bench = await BenchEngine.start(options);
    const sides = await sidesOf(options.model, (own) => bench.draw({}, own));
    const times = await interleave({ fresh: sides.fresh, warm: sides.warm }, rounds);
    await bench.close();
    sides.remove();
    return [figure('eight new Fine-Tunes / one warm one', ratios(times.fresh, times.warm), { atMost: 1.25 })];
  },
};

export const fullSizeEngine: Section = {
  name: 'full-size-engine',
  title: 'The engine at full size',
  about:
    `Processor time of the engine with the model of \`--full-size\`: ${concurrent} pictures at once of ${full.width} x ${full.height}, ${full.numInferenceSteps} steps and one row each. ` +
    'First as in "Fine-Tunes"; then without Fine-Tunes as in "Eight requests at once". ' +
    `Last the largest memory of a process that draws ${hundred} pictures of ${small.width} x ${small.height} and one step.`,
  rounds: 2,
  async measure({ rounds, fullSize, ...rest }) {
    const options = { ...rest, model: fullSize! };
    const bench = await BenchEngine.start(options, full);
    const graphs = await BareGraphs.load(options, undefined, full.width);
    const sides = await sidesOf(options.model, (own) => bench.draw(full, own));
    const requests = new Array(concurrent).fill(full);
    const shared = () => sharedCalls(bench, graphs, requests, processorMs);
    const times = await interleave({ fresh: sides.fresh, warm: sides.warm, shared }, rounds, { warmUp: false });
    await bench.close();
    await graphs.release();
    sides.remove();
    const peaks = await peaksOf(options, rounds);
    const gigabytes = (bytes: readonly number[]): string => `${(median(bytes) / 2 ** 30).toFixed(2)} GiB`;
    return [
      figure('eight new Fine-Tunes / one warm one', ratios(times.fresh, times.warm), { atMost: 1.1 }),
      ...rowCurveFigures(times.shared),
      {
        ...figure('memory with a hundred Fine-Tunes / with one', ratios(peaks.hundred, peaks.one), { atMost: 1.1 }),
        detail: `${gigabytes(peaks.hundred)} and ${gigabytes(peaks.one)}`,
      },
    ];
  },
};

/** The largest memory in bytes of a process that draws with a hundred Fine-Tunes, and of one that does so with one. */
async function peaksOf(options: BenchOptions, rounds: number): Promise<{ hundred: number[]; one: number[] }> {
  const loras = await lorasOf(options.model, hundred);
  const peak = async (fileOf: (i: number) => number): Promise<number> => {
    const adapters = loras.files.map((_, i) => loras.adapterOf(fileOf(i), `memory ${fileOf(i)}`));
    return (await firstPicture(options, { request: small, adapters })).bytes;
  };
  const peaks = await interleave({ hundred: () => peak((i) => i), one: () => peak(() => 0) }, rounds, {
    warmUp: false,
  });
  loras.remove();
  return peaks;
}

/** Files of Fine-Tunes, and what they are to the engine: a file under another hash is a new one. */
async function lorasOf(model: string, count: number) {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-loras-'));
  const files = await writeLoras(model, folder, new Array<number>(count).fill(rank));
  return {
    files,
    adapterOf: (i: number, hash: string): Drawing['adapters'] => [
      { kind: 'lora', file: files[i], hash, scale: 1, token: '' },
    ],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Eight requests with new Fine-Tunes, and eight with one that was drawn with, in milliseconds of processors. */
async function sidesOf(model: string, draw: (own: Partial<Drawing>) => Promise<unknown>) {
  const { files, adapterOf, remove } = await lorasOf(model, concurrent);
  const all = (each: (i: number) => Drawing['adapters']): Promise<number> =>
    processorMs(() => Promise.all(files.map((_, i) => draw({ adapters: each(i)! }))));
  let made = 0;
  await draw({ adapters: adapterOf(0, 'warm')! });
  return {
    fresh: () => all((i) => adapterOf(i, `fresh ${made++}`)),
    warm: () => all(() => adapterOf(0, 'warm')),
    remove,
  };
}
