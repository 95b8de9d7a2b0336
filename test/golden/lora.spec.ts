import { join } from 'node:path';
import { fitAdapter, loadAdapter, readAdapter, readModelFolder, StableDiffusionPipeline } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';
import { denoise, type PipelineCase, readPng } from '../support/pipeline-goldens';
import { psnr } from '../support/psnr';

interface LoraCase extends PipelineCase {
  scale: number;
}

const bundled = join(__dirname, '../../models/shapes');
/** Final latents within 1e-4 of diffusers', pictures at 55 dB or more. */
const tolerance = { latents: 1e-4, decibels: 55 };

const adapterOf = async (format: string) => {
  const file = join(__dirname, 'models/lora', `zwx-robot-${format}.safetensors`);
  return loadAdapter(fitAdapter(await readAdapter(file), (await readModelFolder(bundled)).tensors));
};

describe('A LoRA on the bundled model', () => {
  const cases = loadGoldenTable<LoraCase[]>('lora/pipeline');
  const arrays = loadGolden('lora/pipeline');
  // Equal pictures have no finite ratio; 100 dB is beyond what eight bits can show.
  const worst = { latents: 0, decibels: 100 };
  let pipeline: StableDiffusionPipeline;
  beforeAll(async () => {
    pipeline = await StableDiffusionPipeline.load(bundled, cpu);
  });
  afterAll(async () => {
    await pipeline.release();
    const pictures = cases.filter(({ only_latents }) => !only_latents).length;
    recordGolden('lora latents', cases.length, worst.latents, tolerance.latents);
    recordGolden('lora images (-dB)', pictures, -worst.decibels, -tolerance.decibels);
  });

  it.each(cases.map((one) => [`"${one.prompt}" at scale ${one.scale}, ${one.width} x ${one.height}`, one] as const))(
    'draws %s as diffusers does',
    async (_, one) => {
      const { index, scale, only_latents } = one;
      const adapters = [{ adapter: await adapterOf('diffusers'), strength: scale }];
      const trajectory = await denoise(pipeline, one, adapters);
      const error = largestDifference(trajectory.latents, arrays.float32(`${index}.latents`));
      worst.latents = Math.max(worst.latents, error);
      expect(error).toBeLessThanOrEqual(tolerance.latents);
      if (only_latents) return;
      const expected = await readPng(join(__dirname, 'data/lora', `${index}.png`));
      const decibels = psnr(await pipeline.decode(trajectory), expected);
      worst.decibels = Math.min(worst.decibels, decibels);
      expect(decibels).toBeGreaterThanOrEqual(tolerance.decibels);
    },
  );

  it("is the same by diffusers' and by kohya's keys", async () => {
    const [one, other] = [await adapterOf('diffusers'), await adapterOf('kohya')];
    const read = ({ layers }: typeof one) =>
      [...layers].flatMap(([part, own]) => [...own].map(([path, low]) => [`${part}.${path}`, low] as const));
    const ofKohya = new Map(read(other));
    expect(ofKohya.size).toBe(79);
    for (const [path, { a, b }] of read(one)) {
      const low = ofKohya.get(path)!;
      // kohya's file has twice the factor and half the alpha, each rounded to float16.
      expect([path, largestDifference(low.a, a) < 1e-6, largestDifference(low.b, b) < 1e-6]).toEqual([
        path,
        true,
        true,
      ]);
    }
  });
});
