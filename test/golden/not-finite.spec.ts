import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NotFiniteError, StableDiffusionPipeline } from '@app/diffusion';
import { cpu } from '../support/cpu';

const request = {
  prompt: 'a red circle',
  width: 64,
  height: 64,
  numInferenceSteps: 2,
  guidanceScale: 5,
  seeds: [1],
};

/** A float32 with all bits set is NaN. */
const notANumber = 0xff;

describe('a model whose arithmetic overflows', () => {
  let folder: string;
  let pipeline: StableDiffusionPipeline;

  const load = async (poisoned: string): Promise<void> => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-not-finite-'));
    await cp(join(__dirname, 'models/tiny/sd15-diffusers'), folder, { recursive: true });
    const weights = join(folder, poisoned, 'weights.pb');
    await writeFile(weights, (await readFile(weights)).fill(notANumber));
    pipeline = await StableDiffusionPipeline.load(folder, cpu);
  };

  afterEach(async () => {
    await pipeline.release();
    await rm(folder, { recursive: true });
  });

  it.each([
    ['unet', 'U-Net'],
    ['vae_decoder', 'VAE decoder'],
  ])('fails with one sentence instead of a black picture: %s', async (part, name) => {
    await load(part);
    const drawing = pipeline.generate(request);
    await expect(drawing).rejects.toThrow(NotFiniteError);
    await expect(drawing).rejects.toThrow(`The model gave numbers that are not finite (from its ${name})`);
  });

  it('fails at the first preview', async () => {
    await load('unet');
    const trajectories = await pipeline.prepare(request);
    expect(() => pipeline.preview(trajectories[0])).not.toThrow();
    await pipeline.step(trajectories);
    expect(() => pipeline.preview(trajectories[0])).toThrow(NotFiniteError);
  });
});
