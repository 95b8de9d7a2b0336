import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Drawing } from '../../apps/inference/src/engines/engine';
import { writeLoras } from '../../test/support/loras';
import { BareGraphs } from '../bare-graphs';
import { BenchEngine, firstPicture } from '../bench-engine';
import { type BenchOptions, figure, interleave, median, processorMs, ratios, type Section } from '../section';

/** Requests that are there at once. */
const concurrent = 8;
/** Of a usual LoRA. */
const rank = 8;
/** Pictures of full size, which have one row each, and so few steps that a round takes minutes. */
const full = { width: 256, height: 256, guidanceScale: 1, numInferenceSteps: 2 };

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
    `Processor time of the engine with the model of \`--full-size\`, up to the end of the last step: ${concurrent} pictures at once of ${full.width} x ${full.height}, ${full.numInferenceSteps} steps and one row each. ` +
    'First as in "Fine-Tunes"; then without Fine-Tunes, once all have begun: the bare U-Net with the rows of the same calls, divided by what the engine takes. Last the largest memory of a process that draws them with one step.',
  rounds: 2,
  async measure({ rounds, fullSize, ...rest }) {
    const options = { ...rest, model: fullSize! };
    const bench = await BenchEngine.start(options, full);
    const graphs = await BareGraphs.load(options, undefined, full.width);
    const sides = await sidesOf(options.model, (own) => bench.denoise(full, own));
    const shared = () => sharedCalls(bench, graphs);
    const times = await interleave({ fresh: sides.fresh, warm: sides.warm, shared }, rounds, { warmUp: false });
    await bench.close();
    await graphs.release();
    const peaks = await interleave(
      {
        eight: () => peakBytes(options, sides.adapters),
        one: () =>
          peakBytes(
            options,
            sides.adapters.map(() => sides.adapters[0]),
          ),
      },
      rounds,
      { warmUp: false },
    );
    sides.remove();
    const gigabytes = (bytes: readonly number[]): string => `${(median(bytes) / 2 ** 30).toFixed(2)} GiB`;
    return [
      figure('eight new Fine-Tunes / one warm one', ratios(times.fresh, times.warm), { atMost: 1.1 }),
      figure(
        'the row curve at the same calls / the engine’s calls',
        times.shared.map(({ bareMs, engineMs }) => bareMs / engineMs),
        { atLeast: 0.95 },
      ),
      {
        ...figure('memory with eight Fine-Tunes / with one', ratios(peaks.eight, peaks.one), { atMost: 1.1 }),
        detail: `${gigabytes(peaks.eight)} and ${gigabytes(peaks.one)}`,
      },
    ];
  },
};

const peakBytes = async (options: BenchOptions, adapters: Drawing['adapters'][]): Promise<number> =>
  (await firstPicture(options, { request: full, adapters })).bytes;

/** Eight requests with new Fine-Tunes, and eight with one that was drawn with, in milliseconds of processors. */
async function sidesOf(model: string, draw: (own: Partial<Drawing>) => Promise<unknown>) {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-loras-'));
  const files = await writeLoras(model, folder, new Array<number>(concurrent).fill(rank));
  const adapterOf = (i: number, hash: string): Drawing['adapters'] => [
    { kind: 'lora', file: files[i], hash, scale: 1, token: '' },
  ];
  const all = (hashOf: (i: number) => string, fileOf = (i: number) => i): Promise<number> =>
    processorMs(() => Promise.all(files.map((_, i) => draw({ adapters: adapterOf(fileOf(i), hashOf(i))! }))));
  let made = 0;
  const warm = () =>
    all(
      () => 'warm',
      () => 0,
    );
  await draw({ adapters: adapterOf(0, 'warm')! });
  return {
    adapters: files.map((_, i) => adapterOf(i, `memory ${i}`)),
    /** A file under another hash is a new one to the engine. */
    fresh: () => all(() => `fresh ${made++}`),
    warm,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Eight requests through the engine from when all have begun, and the same calls by the bare graphs. */
async function sharedCalls(bench: BenchEngine, graphs: BareGraphs): Promise<{ engineMs: number; bareMs: number }> {
  let begun = 0;
  let allBegun: () => void = () => undefined;
  const whenAllBegun = new Promise<void>((resolve) => (allBegun = resolve));
  const onStarted = (): void => {
    if (++begun < concurrent) return;
    bench.steps.length = 0;
    allBegun();
  };
  const all = Array.from({ length: concurrent }, () => bench.denoise(full, { onStarted }));
  await whenAllBegun;
  const engineMs = await processorMs(() => Promise.all(all));
  const calls = bench.steps.map(({ rows }) => rows);
  const bareMs = await processorMs(async () => {
    for (const rows of calls) await graphs.unetMs(rows);
  });
  return { engineMs, bareMs };
}
