import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Pipeline } from '../src';

import { readModelDefaults } from '../src/files';
import { fitLatentRgbMap, type PreviewSample } from './fit-latent-preview';

/** Default prompts: a wide range of colours, in words that every model knows. */
const defaultPrompts = [
  'a red circle on a blue background',
  'a green star on a white background',
  'a yellow heart on a black background',
  'a purple square on an orange background',
  'a cyan triangle on a pink background',
  'a brown moon on a gray background',
];

/** Draws a few pictures and writes `preview.json`, the map from latents to colours, into the model's folder. */
async function main(args: string[]): Promise<void> {
  const products = args.includes('--products');
  const [folder, ...prompts] = args.filter((arg) => arg !== '--products');
  if (!folder) throw new Error('Usage: fit-preview [--products] <model folder> [prompt ...]');
  const pipeline = await Pipeline.load(folder, { device: 'cpu' });
  const { nativeSize } = pipeline.facts;
  const { steps = 20, cfg = 7.5, scheduler } = await readModelDefaults(folder);
  const samples: PreviewSample[] = [];
  for (const [seed, prompt] of (prompts.length > 0 ? prompts : defaultPrompts).entries()) {
    const trajectories = await pipeline.prepare({
      prompt,
      width: nativeSize,
      height: nativeSize,
      numInferenceSteps: steps,
      guidanceScale: cfg,
      scheduler,
      seeds: [seed],
    });
    const [trajectory] = trajectories;
    while (!trajectory.done) await pipeline.step(trajectories);
    const image = await pipeline.decode(trajectory);
    samples.push({ latents: trajectory.latents, shape: trajectory.shape, image });
  }
  await pipeline.release();
  await writeFile(join(folder, 'preview.json'), `${JSON.stringify(fitLatentRgbMap(samples, { products }), null, 2)}\n`);
}

main(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
