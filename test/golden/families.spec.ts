import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StableDiffusionPipeline, type TextToImageRequest } from '@app/diffusion';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { unpackFamily } from '../support/families';
import { cpu } from '../support/cpu';

interface Case {
  name: string;
  prompt: string;
  negative_prompt: string | null;
  seed: number;
  steps: number;
  cfg: number;
  height: number;
  width: number;
  scheduler: string;
  scheduler_config: object | null;
  adapters: { file: string; strength?: number; token?: string }[];
  clip_skip?: number;
}

const folder = mkdtempSync(join(tmpdir(), 'families-'));
afterAll(() => rmSync(folder, { recursive: true }));

const requestOf = (one: Case): TextToImageRequest => ({
  prompt: one.prompt,
  negativePrompt: one.negative_prompt,
  width: one.width,
  height: one.height,
  numInferenceSteps: one.steps,
  guidanceScale: one.cfg,
  seeds: [one.seed],
});

/** The folder of a model that draws a case, with what the case says of it. */
async function modelOf(family: string, one: Case): Promise<string> {
  const { clip_skip: skipped, scheduler_config: scheduler, scheduler: className } = one;
  const root = mkdtempSync(join(folder, `${family}-`));
  await unpackFamily(family, root);
  const model = join(root, 'model');
  if (family.endsWith('-file')) {
    mkdirSync(model);
    renameSync(join(root, 'model.safetensors'), join(model, 'any.safetensors'));
  }
  if (skipped !== undefined) writeFileSync(join(model, 'darkroom.json'), JSON.stringify({ clip_skip: skipped + 1 }));
  if (scheduler)
    writeFileSync(
      join(model, 'scheduler', 'scheduler_config.json'),
      JSON.stringify({ ...scheduler, _class_name: className }),
    );
  return model;
}

const casesOf = (family: string): Case[] =>
  (JSON.parse(readFileSync(join('test/golden/families', family, 'family.json'), 'utf8')) as { cases: Case[] }).cases;

const drawn = ['sd15', 'sd15-file', 'sd21', 'sd21-base', 'sd21-file', 'sdxl', 'sdxl-file', 'sdxl-turbo', 'lcm'].flatMap(
  (family) =>
    casesOf(family)
      .filter(({ name, adapters }) => adapters.length === 0 && name !== 'control' && name !== 'sizes')
      .map((one) => [family, one.name, one] as const),
);

it.each(drawn)('A model of %s draws what diffusers does: %s', async (family, name, one) => {
  const model = await modelOf(family, one);
  const pipeline = await StableDiffusionPipeline.load(model, cpu);
  try {
    const expected = await readSafetensors(join(model, '..', 'expected.safetensors'));
    const { latents, images } = await pipeline.generate(requestOf(one));
    const right = await readValues(expected.get(`${name}.latents`)!);
    const largest = right.reduce((most, value, i) => Math.max(most, Math.abs(value - latents[0][i])), 0);
    expect(largest).toBeLessThan(family === 'sd15-file' ? 1e-3 : 1e-4);
    expect(images[0]).toMatchObject({ width: one.width, height: one.height });
  } finally {
    await pipeline.release();
  }
});
