import { createReadStream } from 'node:fs';
import { readModelFolder, Pipeline } from '@app/diffusion';
import { BenchEngine, firstPictureMs } from '../bench-engine';
import { type BenchOptions, figure, interleave, msOf, ratios, type Section } from '../section';

export const start: Section = {
  name: 'start',
  title: 'Start',
  about:
    'Loading the model, divided by the time of reading the files of its weights; and from the start of a process with an engine to its first picture of one step, divided by such a ' +
    'picture of an engine that runs.',
  rounds: 7,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const sides = {
      read: () => msOf(() => readWeights(options)),
      load: () => load(options),
      first: () => firstPictureMs(options),
      running: () => msOf(() => bench.draw({ numInferenceSteps: 1 })),
    };
    const times = await interleave(sides, options.rounds);
    await bench.close();
    return [
      figure('load / read the files', ratios(times.load, times.read)),
      figure('process start to first picture / a picture', ratios(times.first, times.running)),
    ];
  },
};

async function readWeights({ model }: BenchOptions): Promise<void> {
  const { tensors } = await readModelFolder(model);
  const files = new Set([...tensors.values()].flatMap((part) => [...part.values()].map(({ file }) => file)));
  for (const file of files) for await (const _ of createReadStream(file, { highWaterMark: 1 << 22 }));
}

async function load({ model, device, threads }: BenchOptions): Promise<number> {
  const startedAt = performance.now();
  const pipeline = await Pipeline.load(model, { device, intraOpNumThreads: threads });
  const ms = performance.now() - startedAt;
  await pipeline.release();
  return ms;
}
