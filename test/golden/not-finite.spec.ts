import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelFolderError, NotFiniteError, StableDiffusionPipeline } from '@app/diffusion';
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

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-not-finite-'));
  await cp(join(__dirname, 'models/tiny/sd15-diffusers'), folder, { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

describe('a model whose arithmetic overflows in a drawing', () => {
  let pipeline: StableDiffusionPipeline;
  afterEach(() => pipeline.release());

  /** So much guidance overflows float32. */
  const overflowing = { ...request, guidanceScale: Number.MAX_VALUE };

  it.each([
    ['U-Net', {}, overflowing],
    // Latents that are divided by this are infinite, but for the zeros of the trial run.
    ['VAE decoder', { scaling_factor: 1e-45 }, request],
  ])('fails with one sentence instead of a black picture: %s', async (part, change, asked) => {
    const config = join(folder, 'vae_decoder/config.json');
    const values = JSON.parse(await readFile(config, 'utf8')) as object;
    await writeFile(config, JSON.stringify({ ...values, ...change }));
    pipeline = await StableDiffusionPipeline.load(folder, cpu);
    const drawing = pipeline.generate(asked);
    await expect(drawing).rejects.toThrow(NotFiniteError);
    await expect(drawing).rejects.toThrow(`The model gave numbers that are not finite (from its ${part})`);
  });

  it('fails at the first preview', async () => {
    pipeline = await StableDiffusionPipeline.load(folder, cpu);
    const trajectories = await pipeline.prepare(overflowing);
    expect(() => pipeline.preview(trajectories[0])).not.toThrow();
    await pipeline.step(trajectories);
    expect(() => pipeline.preview(trajectories[0])).toThrow(NotFiniteError);
  });
});

describe('a model with weights that are no numbers', () => {
  it.each(['text_encoder', 'unet', 'vae_decoder'])('is refused when it is loaded: %s', async (part) => {
    const weights = join(folder, part, 'weights.pb');
    await writeFile(weights, (await readFile(weights)).fill(notANumber));
    const loading = StableDiffusionPipeline.load(folder, cpu).then((pipeline) => pipeline.release());
    await expect(loading).rejects.toThrow(ModelFolderError);
    await expect(loading).rejects.toThrow(`${part}/model.onnx gives numbers that are not finite`);
  });
});
