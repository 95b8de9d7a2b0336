import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mergeLora, StableDiffusionPipeline } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';
import { withShapes } from '../support/onnx';

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
  const folderOf: Partial<Record<Run['model'], string>> = {};
  let worst = 0;

  /** The U-Net and the scheduler of `tiny/lcm`, with the other parts of the model that it was recorded with. */
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'darkroom-fast-'));
    for (const name of ['lcm', 'turbo'] as const)
      await cp(tiny('sd15-diffusers'), (folderOf[name] = join(scratch, name)), { recursive: true });
    await rm(join(scratch, 'lcm/unet'), { recursive: true });
    await cp(tiny('lcm'), join(scratch, 'lcm'), { recursive: true });
    const turbo = JSON.stringify(runs.find(({ model }) => model === 'turbo')!.scheduler);
    await writeFile(join(scratch, 'turbo/scheduler/scheduler_config.json'), turbo);
    const lora = join(__dirname, 'models/lora/lcm-kohya.safetensors');
    folderOf['lcm-lora'] = join(scratch, 'lcm-lora');
    const options = { baseFolder: join(scratch, 'lcm'), lora, scale: 1, folder: folderOf['lcm-lora'] };
    expect(await mergeLora(options)).toBeGreaterThan(30);
  });
  afterAll(async () => {
    recordGolden('fast models', runs.length, worst, tolerance);
    await rm(scratch, { recursive: true });
  });

  const draw = async ({ model, prompt, size, steps, cfg, seed }: Run, seeds = [seed]) => {
    const pipeline = await StableDiffusionPipeline.load(folderOf[model]!, cpu);
    try {
      const request = { prompt, width: size, height: size, numInferenceSteps: steps, guidanceScale: cfg, seeds };
      return { ...(await pipeline.generate(request)), calls: pipeline.spent.unet.runs };
    } finally {
      await pipeline.release();
    }
  };

  it.each(runs.map((run, index) => [`${run.model} in ${run.steps} steps with cfg ${run.cfg}`, run, index] as const))(
    '%s draws what diffusers draws',
    async (_, run, index) => {
      const { latents } = await draw(run);
      const expected = golden.float32(`${index}.latents`);
      const error = largestDifference(latents[0], expected) / Math.max(...expected.map(Math.abs));
      worst = Math.max(worst, error);
      expect(error).toBeLessThanOrEqual(tolerance);
    },
  );

  it('takes guidance as an input of a distilled U-Net: one row a picture, and another picture for another cfg', async () => {
    const run = runs.find(({ model, cfg }) => model === 'lcm' && cfg > 1)!;
    const [strong, weak] = [await draw(run), await draw({ ...run, cfg: 1 })];
    expect(strong.latents).not.toStrictEqual(weak.latents);
    expect(strong.calls).toBe(weak.calls);
    expect((await draw(run, [9, run.seed])).latents[1]).toStrictEqual(strong.latents[0]);
  });

  it('draws with LCM-LoRA on a model of another scheduler what diffusers draws, if its defaults name lcm', async () => {
    const [run, index] = runs.map((each, i) => [each, i] as const).find(([{ model }]) => model === 'lcm-lora')!;
    const folder = join(scratch, 'lora-on-pndm');
    await cp(folderOf['lcm-lora']!, folder, { recursive: true });
    await cp(join(tiny('sd15-diffusers'), 'scheduler'), join(folder, 'scheduler'), { recursive: true });
    const pipeline = await StableDiffusionPipeline.load(folder, cpu);
    expect(pipeline.facts.scheduler).toBe('pndm');
    const { prompt, size, steps, cfg, seed } = run;
    const request = { prompt, width: size, height: size, numInferenceSteps: steps, guidanceScale: cfg, seeds: [seed] };
    const { latents } = await pipeline.generate({ ...request, scheduler: 'lcm' });
    await pipeline.release();
    const expected = golden.float32(`${index}.latents`);
    const error = largestDifference(latents[0], expected) / Math.max(...expected.map(Math.abs));
    expect(error).toBeLessThanOrEqual(tolerance);
  });

  it('is refused if nothing tells the width of its guidance', async () => {
    const file = join(scratch, 'lcm/unet/model.onnx');
    const [graph, config] = await Promise.all([readFile(file), readFile(join(scratch, 'lcm/unet/config.json'))]);
    await writeFile(file, withShapes(graph, { timestep_cond: ['batch', 'width'] }));
    await writeFile(join(scratch, 'lcm/unet/config.json'), '{}');
    await expect(draw(runs[0])).rejects.toThrow(`${file} takes timestep_cond, and nothing tells its width.`);
    await writeFile(join(scratch, 'lcm/unet/config.json'), config);
    await expect(draw(runs[0])).resolves.toBeDefined();
  });
});
