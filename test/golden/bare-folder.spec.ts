import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelWidths, StableDiffusionPipeline } from '@app/diffusion';
import { largestDifference } from '../support/golden';
import { KeptSessions } from '../support/kept-sessions';
import { withShapes } from '../support/onnx';

type Shapes = Parameters<typeof withShapes>[1];

const tiny = (name: string) => join(__dirname, 'models/tiny', name);
/** How wide the levels are stands in no graph: they are taken to be those of Stable Diffusion 1.x. */
const defaultWidths = modelWidths({ textEncoder: {}, unet: {}, vaeDecoder: {} });
const request = {
  prompt: 'a red circle',
  negativePrompt: 'gray',
  width: 64,
  height: 96,
  numInferenceSteps: 2,
  guidanceScale: 5,
  seeds: [1, 2, 3],
};

let scratch: string;
let folder: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-bare-'));
  folder = join(scratch, 'model');
});
afterEach(() => rm(scratch, { recursive: true }));

const sessions = new KeptSessions();
afterAll(() => sessions.release());

async function draw(path: string) {
  const pipeline = await StableDiffusionPipeline.load(path, sessions.options);
  try {
    const { facts, spent } = pipeline;
    const before = spent.unet.runs;
    const drawn = await pipeline.generate(request);
    return { ...drawn, facts, calls: spent.unet.runs - before };
  } finally {
    await pipeline.release();
  }
}

/** Removes every optional JSON file of a folder: graphs, the scheduler's file and the tokenizer stay. */
async function bare(): Promise<void> {
  const parts = ['text_encoder', 'unet', 'vae_decoder'];
  await rm(join(folder, 'model_index.json'));
  for (const part of parts) await rm(join(folder, part, 'config.json'));
  for (const part of parts) expect((await readdir(join(folder, part))).join()).not.toMatch(/json/);
}

async function redeclare(part: string, shapes: Shapes): Promise<void> {
  const file = join(folder, part, 'model.onnx');
  await writeFile(file, withShapes(await readFile(file), shapes));
}

describe('a folder with nothing beside its graphs', () => {
  it.each(['sd15-diffusers', 'sd21-optimum', 'sd15-fp16'])(
    'draws the same as the complete folder, %s',
    async (name) => {
      await cp(tiny(name), folder, { recursive: true });
      const whole = await draw(folder);
      await bare();
      const drawn = await draw(folder);
      expect(drawn.facts).toEqual({ ...whole.facts, widths: defaultWidths });
      expect(drawn.images).toStrictEqual(whole.images);
    },
  );

  it('is recognised even if the graphs leave channels and widths free', async () => {
    await cp(tiny('sd15-diffusers'), folder, { recursive: true });
    const whole = await draw(folder);
    await bare();
    const latents = ['batch', 'channels', 'height', 'width'];
    await redeclare('unet', { out_sample: latents, encoder_hidden_states: ['batch', 'sequence', 'hidden'] });
    await redeclare('vae_decoder', { sample: latents });
    await redeclare('text_encoder', { last_hidden_state: ['batch', 'sequence', 'hidden'] });
    const drawn = await draw(folder);
    expect(drawn.facts).toEqual({ ...whole.facts, widths: defaultWidths });
    expect(drawn.images).toStrictEqual(whole.images);
  });

  it('uses the scaling factor of its own file if that is all it has', async () => {
    await cp(tiny('sd15-diffusers'), folder, { recursive: true });
    await bare();
    const byDefault = await draw(folder);
    const config = join(folder, 'vae_decoder/config.json');
    await writeFile(config, JSON.stringify({ scaling_factor: 0.18215 }));
    expect((await draw(folder)).images).toStrictEqual(byDefault.images);
    await writeFile(config, JSON.stringify({ scaling_factor: 0.5 }));
    const other = await draw(folder);
    expect(other.latents).toStrictEqual(byDefault.latents);
    expect(other.images).not.toStrictEqual(byDefault.images);
  });
});

describe('a graph exported for a fixed number of rows', () => {
  let free: Awaited<ReturnType<typeof draw>>;
  beforeAll(async () => {
    free = await draw(tiny('sd15-diffusers'));
  });

  /** Three pictures, with guidance: six rows. */
  it.each([
    [1, 6],
    [2, 3],
    [4, 2],
  ])('of %d is called with that many at a time', async (rows, callsOfStep) => {
    await cp(tiny('sd15-diffusers'), folder, { recursive: true });
    await redeclare('unet', {
      sample: [rows, 4, 'height', 'width'],
      timestep: [rows],
      encoder_hidden_states: [rows, 'sequence', 32],
      out_sample: [rows, 4, 'height', 'width'],
    });
    await redeclare('text_encoder', { input_ids: [rows, 77], last_hidden_state: [rows, 77, 32] });
    await redeclare('vae_decoder', {
      latent_sample: [rows, 4, 'height', 'width'],
      sample: [rows, 3, 'height', 'width'],
    });
    const fixed = await draw(folder);
    expect(free.calls).toBeGreaterThanOrEqual(request.numInferenceSteps);
    expect(fixed.calls).toBe(callsOfStep * free.calls);
    expect(fixed.latents).toHaveLength(3);
    fixed.latents.forEach((values, i) => expect(largestDifference(values, free.latents[i])).toBeLessThan(1e-4));
  });
});
