import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  loadAdapter,
  readAdapter,
  readModelFolder,
  StableDiffusionPipeline,
  writeMerged,
} from '@app/diffusion';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';

interface Case {
  name: string;
  prompt: string;
  negative_prompt: string | null;
  seed: number;
  steps: number;
  cfg: number;
  height: number;
  width: number;
  adapters: { file: string; strength?: number; token?: string }[];
}

const folder = mkdtempSync(join(tmpdir(), 'adapters-'));
afterAll(() => rmSync(folder, { recursive: true }));

const cases = ['sd15', 'sd21', 'sd21-base', 'sdxl'].flatMap((family) => {
  const json = readFileSync(join('test/golden/families', family, 'family.json'), 'utf8');
  const all = (JSON.parse(json) as { cases: Case[] }).cases;
  return all.filter(({ adapters }) => adapters.length > 0).map((one) => [family, one.name, one] as const);
});

it.each(cases)('A model of %s draws what diffusers does with its %s', async (family, name, one) => {
  const root = mkdtempSync(join(folder, `${family}-`));
  await unpackFamily(family, root);
  const model = join(root, 'model');
  const { tensors } = await readModelFolder(model);
  const adapters: AdapterUse[] = [];
  let changedWeights: string | undefined;
  for (const { file, strength = 1, token } of one.adapters) {
    const fitted = fitAdapter(await readAdapter(join(root, 'adapters', file)), tensors);
    adapters.push({ adapter: await loadAdapter(fitted), strength, token });
    if (fitted.merged.size > 0)
      await writeMerged(fitted, strength, (changedWeights = join(root, 'merged.safetensors')));
  }
  const pipeline = await StableDiffusionPipeline.load(model, { ...cpu, changedWeights });
  try {
    const { latents } = await pipeline.generate({
      prompt: one.prompt,
      negativePrompt: one.negative_prompt,
      width: one.width,
      height: one.height,
      numInferenceSteps: one.steps,
      guidanceScale: one.cfg,
      seeds: [one.seed],
      adapters,
    });
    const expected = await readSafetensors(join(root, 'expected.safetensors'));
    const right = await readValues(expected.get(`${name}.latents`)!);
    const largest = right.reduce((most, value, i) => Math.max(most, Math.abs(value - latents[0][i])), 0);
    expect(largest).toBeLessThan(1e-4);
  } finally {
    await pipeline.release();
  }
});
