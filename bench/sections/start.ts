import { mkdtempSync, rmSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readModelFolder, StableDiffusionPipeline } from '@app/diffusion';
import { BenchEngine, firstPicture } from '../bench-engine';
import { type BenchOptions, figure, interleave, msOf, ratios, type Section } from '../section';

const pieceBytes = 16 * 1024 * 1024;

export const start: Section = {
  name: 'start',
  title: 'Start',
  about:
    'Loading the model without and with its optimised graphs in the cache, divided by the time of reading all files of its graphs; and from the start of a process with an engine ' +
    'to its first picture of one step, divided by such a picture of an engine that runs.',
  rounds: 7,
  async measure(options) {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
    const caches = { warm: join(folder, 'warm'), cold: join(folder, 'cold') };
    const empty = () => rmSync(caches.cold, { recursive: true, force: true });
    const bench = await BenchEngine.start(options);
    // An engine keeps the graphs of its models in a folder of its own inside its cache.
    await load(options, join(caches.warm, 'graphs'));
    const sides = {
      read: () => msOf(() => readGraphs(options)),
      cold: () => (empty(), load(options, join(caches.cold, 'graphs'))),
      warm: () => load(options, join(caches.warm, 'graphs')),
      firstCold: async () => (empty(), (await firstPicture(options, caches.cold)).ms),
      firstWarm: async () => (await firstPicture(options, caches.warm)).ms,
      running: () => msOf(() => bench.draw({ numInferenceSteps: 1 })),
    };
    const times = await interleave(sides, options.rounds);
    await bench.close();
    rmSync(folder, { recursive: true, force: true });
    return [
      figure('load with an empty cache / read the files', ratios(times.cold, times.read)),
      figure('load from the cache / read the files', ratios(times.warm, times.read)),
      figure('load from the cache / with an empty cache', ratios(times.warm, times.cold)),
      figure('process start to first picture, empty cache / a picture', ratios(times.firstCold, times.running)),
      figure('process start to first picture, full cache / a picture', ratios(times.firstWarm, times.running)),
    ];
  },
};

/**
 * Reads each graph and the files beside it, where the weights of a large one are; in pieces, because a file may have
 * more bytes than a buffer.
 */
async function readGraphs({ model }: BenchOptions): Promise<void> {
  const { textEncoder, unet, vaeDecoder } = await readModelFolder(model, 'cpu');
  const piece = Buffer.alloc(pieceBytes);
  for (const folder of new Set([textEncoder, unet, vaeDecoder].map(({ path }) => dirname(path))))
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) continue;
      const file = await open(join(folder, entry.name));
      while ((await file.read(piece)).bytesRead > 0);
      await file.close();
    }
}

async function load({ model, device, threads }: BenchOptions, optimizedModelDir: string): Promise<number> {
  const options = { device, intraOpNumThreads: threads, optimizedModelDir };
  const startedAt = performance.now();
  const pipeline = await StableDiffusionPipeline.load(model, options);
  const ms = performance.now() - startedAt;
  await pipeline.release();
  return ms;
}
