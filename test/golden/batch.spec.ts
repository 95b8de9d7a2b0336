import { basename, join } from 'node:path';
import fc from 'fast-check';
import { AbortError, schedulerNames, StableDiffusionPipeline } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { recordGolden } from '../support/golden';
import { psnr } from '../support/psnr';

const load = (folder: string) => StableDiffusionPipeline.load(join(__dirname, folder), cpu);

/** Tolerance: 60 dB between a picture drawn alone and the same one drawn in a batch. */
describe.each([
  { folder: 'models/tiny/sd15-diffusers', edge: 64, schedulers: [undefined, ...schedulerNames] },
  // How a scheduler keeps pictures apart is the same for every model: its own and one that draws noise.
  { folder: '../../models/shapes', edge: 128, schedulers: [undefined, 'dpmpp_2m_sde_karras' as const] },
])('a picture in a batch, with $folder', ({ folder, edge, schedulers }) => {
  let pipeline: StableDiffusionPipeline;
  let worst = 100;

  beforeAll(async () => {
    pipeline = await load(folder);
  });
  afterAll(async () => {
    await pipeline.release();
    recordGolden(`batch against single, ${basename(folder)} (-dB)`, schedulers.length, -worst, -60);
  });

  it.each(schedulers)('equals the one drawn alone, scheduler %s', async (scheduler) => {
    const draw = (seeds: number[]) =>
      pipeline.generate({
        prompt: 'two green stars on a white background',
        negativePrompt: 'gray',
        width: edge,
        height: edge,
        // More than any of them remembers.
        numInferenceSteps: 5,
        guidanceScale: 6,
        scheduler,
        seeds,
      });
    const together = await draw([11, 12, 13]);
    const alone = await draw([12]);
    const decibels = Math.min(100, psnr(together.images[1], alone.images[0]));
    worst = Math.min(worst, decibels);
    expect(decibels).toBeGreaterThanOrEqual(60);
    expect(psnr(together.images[0], together.images[1])).toBeLessThan(40);
  });

  it('is the same to the last bit at any position in batches of one size', async () => {
    const draw = (seeds: number[]) =>
      pipeline.generate({ prompt: 'a', width: edge, height: edge, numInferenceSteps: 4, guidanceScale: 5, seeds });
    const [first, second] = [await draw([11, 12, 13]), await draw([13, 14, 12])];
    expect(first.latents[1]).toStrictEqual(second.latents[2]);
    expect(first.images[2]).toStrictEqual(second.images[0]);
  });
});

describe('any run', () => {
  let pipeline: StableDiffusionPipeline;

  beforeAll(async () => {
    pipeline = await load('models/tiny/sd15-diffusers');
  });
  afterAll(() => pipeline.release());

  const request = fc.record({
    prompt: fc.string({ unit: 'grapheme', maxLength: 400 }),
    negativePrompt: fc.option(fc.string({ maxLength: 40 })),
    numInferenceSteps: fc.integer({ min: 1, max: 20 }),
    scheduler: fc.option(fc.constantFrom(...schedulerNames), { nil: undefined }),
    size: fc.constantFrom([64, 64], [64, 96], [96, 64]),
    guidanceScale: fc.constantFrom(1, 7.5, 20),
    promptWeighting: fc.boolean(),
    seeds: fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 1, maxLength: 2 }),
  });

  it('ends with finite latents', async () => {
    const run = async ({
      size: [width, height],
      ...rest
    }: typeof request extends fc.Arbitrary<infer T> ? T : never) => {
      const { latents, images } = await pipeline.generate({ ...rest, width, height });
      expect(latents.every((values) => values.every(Number.isFinite))).toBe(true);
      expect(images.every((image) => image.width === width && image.height === height)).toBe(true);
    };
    await fc.assert(fc.asyncProperty(request, run), { numRuns: 40 });
  });

  it.each(schedulerNames)('stops at the step of an abort, scheduler %s', async (scheduler) => {
    for (const at of [0, 1, 2, 3, 4, 5]) {
      const signal = { aborted: at === 0 };
      let done = 0;
      const running = pipeline.generate(
        { prompt: '', width: 64, height: 64, numInferenceSteps: 6, guidanceScale: 2, seeds: [at], scheduler },
        { signal, onStep: (step) => (signal.aborted = (done = step) === at) },
      );
      await expect(running).rejects.toBeInstanceOf(AbortError);
      expect(done).toBe(at);
    }
  });

  it('has a preview at every step, with the size of the latents', async () => {
    const seen: number[] = [];
    await pipeline.generate(
      { prompt: 'a', width: 64, height: 96, numInferenceSteps: 3, guidanceScale: 2, seeds: [1, 2], scheduler: 'euler' },
      {
        onStep: (step, total, trajectories) => {
          seen.push(step / total);
          expect(pipeline.preview(trajectories[1])).toMatchObject({ width: 8, height: 12 });
        },
      },
    );
    expect(seen).toEqual([1 / 3, 2 / 3, 1]);
  });

  it.each([
    ['a width between latents', { width: 60 }, /width is 60/],
    ['no seed', { seeds: [] }, /no seeds/],
    ['no steps', { numInferenceSteps: 0 }, /steps is 0/],
    ['half a step', { numInferenceSteps: 1.5 }, /steps is 1.5/],
    ['no guidance scale', { guidanceScale: NaN }, /guidance scale is NaN/],
  ])('rejects %s', async (_, change, message) => {
    const good = { prompt: '', width: 64, height: 64, numInferenceSteps: 1, guidanceScale: 1, seeds: [1] };
    await expect(pipeline.prepare({ ...good, ...change })).rejects.toThrow(message);
  });
});

describe('a prompt', () => {
  let pipeline: StableDiffusionPipeline;

  beforeAll(async () => {
    pipeline = await load('models/tiny/sd15-diffusers');
  });
  afterAll(() => pipeline.release());

  const draw = (prompt: string, change: { negativePrompt?: string; promptWeighting?: boolean } = {}) =>
    pipeline.generate({ prompt, width: 64, height: 64, numInferenceSteps: 2, guidanceScale: 5, seeds: [1], ...change });
  const words = (count: number) => Array.from({ length: count }, (_, i) => (i % 2 ? 'red' : 'circle')).join(' ');

  it('longer than the window is used in full', async () => {
    const [short, long] = [await draw(words(75)), await draw(words(76))];
    expect([short.promptChunks, long.promptChunks]).toEqual([1, 2]);
    expect(long.latents[0]).not.toStrictEqual(short.latents[0]);
  });

  it('has as many rows as its negative prompt', async () => {
    expect((await draw('a', { negativePrompt: words(200) })).promptChunks).toBe(3);
  });

  it('is rejected beyond 32 rows, before anything is encoded', async () => {
    const { textEncoder } = pipeline.spent;
    await expect(draw(words(32 * 75 + 1))).rejects.toThrow(
      'The prompt takes 33 chunks of 75 tokens; at most 32 can be drawn.',
    );
    expect(pipeline.spent.textEncoder).toEqual(textEncoder);
  });

  it('with attention syntax is plain text unless weighting is on', async () => {
    const [plain, off, on, same] = await Promise.all([
      draw('a red circle'),
      draw('a (red:1.5) circle'),
      draw('a (red:1.5) circle', { promptWeighting: true }),
      draw('a (red:1) circle', { promptWeighting: true }),
    ]);
    expect(off.latents[0]).not.toStrictEqual(plain.latents[0]);
    expect(on.latents[0]).not.toStrictEqual(plain.latents[0]);
    expect(on.latents[0]).not.toStrictEqual(off.latents[0]);
    expect(same.latents[0]).toStrictEqual(plain.latents[0]);
  });
});
