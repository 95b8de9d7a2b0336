import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fitAdapter, loadAdapter, readAdapter, readModelFolder, StableDiffusionPipeline } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';

/** Made by scripts/goldens/fast_models.py. */
interface Run {
  model: 'lcm' | 'lcm-lora' | 'turbo';
  prompt: string;
  size: number;
  steps: number;
  cfg: number;
  seed: number;
  scheduler?: object;
}

/** Relative to the largest value of the latents, which random weights make large. */
const tolerance = 2e-4;

const tiny = (name: string) => join(__dirname, 'models/tiny', name);
const runs = loadGoldenTable<Run[]>('fast-models');
const golden = loadGolden('fast-models');

describe('a model that needs few steps', () => {
  let scratch: string;
  const folderOf = ({ model }: Run) => join(scratch, model === 'lcm-lora' ? 'lcm' : model);
  let worst = 0;

  /** The U-Net and the scheduler of `tiny/lcm`, with the other parts of the model that it was recorded with. */
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'darkroom-fast-'));
    for (const name of ['lcm', 'turbo']) await cp(tiny('sd15-diffusers'), join(scratch, name), { recursive: true });
    await rm(join(scratch, 'lcm/unet'), { recursive: true });
    await cp(tiny('lcm'), join(scratch, 'lcm'), { recursive: true });
    const turbo = JSON.stringify(runs.find(({ model }) => model === 'turbo')!.scheduler);
    await writeFile(join(scratch, 'turbo/scheduler/scheduler_config.json'), turbo);
  });
  afterAll(async () => {
    recordGolden('fast models', runs.length, worst, tolerance);
    await rm(scratch, { recursive: true });
  });

  interface Options {
    seeds?: number[];
    folder?: string;
    scheduler?: 'lcm';
  }
  const draw = async (run: Run, { seeds = [run.seed], folder = folderOf(run), scheduler }: Options = {}) => {
    const { model, prompt, size, steps, cfg } = run;
    const lora = join(__dirname, 'models/lora/lcm-kohya.safetensors');
    const fit = async () => fitAdapter(await readAdapter(lora), (await readModelFolder(folder)).tensors);
    const adapters = model === 'lcm-lora' ? [{ adapter: await loadAdapter(await fit()), strength: 1 }] : [];
    const pipeline = await StableDiffusionPipeline.load(folder, cpu);
    try {
      const request = { prompt, width: size, height: size, numInferenceSteps: steps, guidanceScale: cfg, seeds };
      const { latents } = await pipeline.generate({ ...request, adapters, scheduler });
      return { latents, calls: pipeline.spent.unet.runs, scheduler: pipeline.facts.scheduler };
    } finally {
      await pipeline.release();
    }
  };
  const errorOf = (latents: Float32Array, index: number): number => {
    const expected = golden.float32(`${index}.latents`);
    return largestDifference(latents, expected) / Math.max(...expected.map(Math.abs));
  };

  it.each(runs.map((run, index) => [`${run.model} in ${run.steps} steps with cfg ${run.cfg}`, run, index] as const))(
    '%s draws what diffusers draws',
    async (_, run, index) => {
      const { latents } = await draw(run);
      const error = errorOf(latents[0], index);
      worst = Math.max(worst, error);
      expect(error).toBeLessThanOrEqual(tolerance);
    },
  );

  it('takes guidance as an input of a distilled U-Net: one row a picture, and another picture for another cfg', async () => {
    const run = runs.find(({ model, cfg }) => model === 'lcm' && cfg > 1)!;
    const [strong, weak] = [await draw(run), await draw({ ...run, cfg: 1 })];
    expect(strong.latents).not.toStrictEqual(weak.latents);
    expect(strong.calls).toBe(weak.calls);
    expect((await draw(run, { seeds: [9, run.seed] })).latents[1]).toStrictEqual(strong.latents[0]);
  });

  it('draws with LCM-LoRA on a model of another scheduler what diffusers draws, if its defaults name lcm', async () => {
    const [run, index] = runs.map((each, i) => [each, i] as const).find(([{ model }]) => model === 'lcm-lora')!;
    const folder = join(scratch, 'lora-on-pndm');
    await cp(folderOf(run), folder, { recursive: true });
    await cp(join(tiny('sd15-diffusers'), 'scheduler'), join(folder, 'scheduler'), { recursive: true });
    const { latents, scheduler } = await draw(run, { folder, scheduler: 'lcm' });
    expect(scheduler).toBe('pndm');
    expect(errorOf(latents[0], index)).toBeLessThanOrEqual(tolerance);
  });
});
