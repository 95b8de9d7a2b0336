import { join } from 'node:path';
import sharp from 'sharp';
import {
  type AdapterUse,
  fitAdapter,
  loadAdapter,
  type LoadedAdapter,
  type LoadOptions,
  readAdapter,
  readModelFolder,
  type RgbImage,
  type SchedulerName,
  Pipeline,
  type Trajectory,
} from '@app/diffusion';
import { fromPlanes } from '../../libs/diffusion/src/tensor/planes';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from './golden';
import { psnr } from './psnr';

const golden = join(__dirname, '../golden');

/** A recorded request, and where its arrays are. */
export interface PipelineCase {
  index: number;
  prompt: string;
  negative_prompt?: string | null;
  scheduler?: SchedulerName;
  steps: number;
  cfg: number;
  seed: number;
  width: number;
  height: number;
  /** Of the model's LoRA. */
  scale?: number;
  /** Without a picture: other cases test the decoder. */
  only_latents?: boolean;
}

/** How much guidance beyond the usual amplifies rounding. */
const amplification = (cfg: number): number => Math.max(1, cfg / 7.5);

const tiny = (name: string) => join(golden, 'models/tiny', name);

/**
 * Tolerances against diffusers: the bundled model's final latents 1e-4, its pictures 55 dB or more; for the tiny
 * models, whose random weights amplify rounding, 1e-3 and 45 dB. Those of latents are multiplied by `amplification`.
 */
export interface PipelineGolden {
  name: string;
  folder: string;
  golden: string;
  latents: number;
  decibels: number;
  /** Its file. */
  lora?: string;
}
const ofShapes = { folder: join(golden, '../../models/shapes'), latents: 1e-4, decibels: 55 };
const robot = join(golden, 'models/lora/zwx-robot-diffusers.safetensors');
export const models: PipelineGolden[] = [
  { name: 'shapes', ...ofShapes, golden: 'shapes' },
  { name: 'sd15-diffusers', folder: tiny('sd15-diffusers'), golden: 'sd15-diffusers', latents: 1e-3, decibels: 45 },
  { name: 'sd21-optimum', folder: tiny('sd21-optimum'), golden: 'sd21-optimum', latents: 1e-3, decibels: 45 },
  { name: 'shapes with a LoRA', ...ofShapes, golden: 'lora', lora: robot },
];

/** Draws the chosen recorded requests, and compares latents and pictures with the recording. */
export function drawsGoldens(
  { name, folder, golden: recorded, lora, ...tolerance }: PipelineGolden,
  options: LoadOptions,
  isChosen = (_: PipelineCase) => true,
): void {
  const cases = loadGoldenTable<PipelineCase[]>(`${recorded}/pipeline`).filter(isChosen);
  const arrays = loadGolden(`${recorded}/pipeline`);
  // Equal pictures have an infinite ratio; 100 dB is more than eight bits can show.
  const worst = { latents: 0, decibels: 100 };
  let pipeline: Pipeline;
  let adapters: AdapterUse[] = [];

  beforeAll(async () => {
    if (lora) adapters = [{ adapter: await adapterOf(lora, folder), scale: 1 }];
    pipeline = await Pipeline.load(folder, options);
  });
  afterAll(async () => {
    await pipeline.release();
    if (Number.isFinite(tolerance.latents))
      recordGolden(`${name} latents`, cases.length, worst.latents, tolerance.latents);
    // The table stores errors; decibels are negated, because larger is better.
    recordGolden(
      `${name} images (-dB)`,
      cases.filter(({ only_latents }) => !only_latents).length,
      -worst.decibels,
      -tolerance.decibels,
    );
  });

  it.each(cases.map((one) => [`${one.index}: ${one.scheduler ?? 'own scheduler'}, "${one.prompt}"`, one] as const))(
    'draws %s',
    async (_, one) => {
      const { index, cfg, width, height } = one;
      const used = adapters.map((use) => ({ ...use, scale: one.scale ?? 1 }));
      const trajectory = await denoise(pipeline, one, used);
      const error = largestDifference(trajectory.latents, arrays.float32(`${index}.latents`)) / amplification(cfg);
      worst.latents = Math.max(worst.latents, error);
      expect(error).toBeLessThanOrEqual(tolerance.latents);
      if (one.only_latents) return;
      const expected = arrays.has(`${index}.image`)
        ? fromPlanes(arrays.float32(`${index}.image`), width, height, (value) => value * 255)
        : await readPng(join(golden, 'data', recorded, `${index}.png`));
      const decibels = psnr(await pipeline.decode(trajectory), expected);
      worst.decibels = Math.min(worst.decibels, decibels);
      expect(decibels).toBeGreaterThanOrEqual(tolerance.decibels);
    },
  );
}

async function adapterOf(file: string, folder: string): Promise<LoadedAdapter> {
  const { tensors } = await readModelFolder(folder);
  return loadAdapter(fitAdapter(await readAdapter(file), tensors));
}

/** Final latents, before decoding. */
async function denoise(pipeline: Pipeline, one: PipelineCase, adapters: AdapterUse[]): Promise<Trajectory> {
  const { prompt, negative_prompt, scheduler, steps, cfg, seed, width, height } = one;
  const [trajectory] = await pipeline.prepare({
    prompt,
    negativePrompt: negative_prompt,
    width,
    height,
    numInferenceSteps: steps,
    guidanceScale: cfg,
    seeds: [seed],
    scheduler,
    adapters,
  });
  while (!trajectory.done) await pipeline.step([trajectory]);
  return trajectory;
}

export async function readPng(file: string): Promise<RgbImage> {
  const { data, info } = await sharp(file).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data: new Uint8Array(data) };
}
