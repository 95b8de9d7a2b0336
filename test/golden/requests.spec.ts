import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { AbortError, NotFiniteError, schedulerNames, Pipeline, type TextToImageRequest } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';

const root = mkdtempSync(join(tmpdir(), 'requests-'));
const model = join(root, 'model');
let pipeline: Pipeline;
beforeAll(async () => {
  await unpackFamily('sd15', root);
  pipeline = await Pipeline.load(model, cpu);
});
afterAll(async () => {
  await pipeline.release();
  rmSync(root, { recursive: true });
});

const small: TextToImageRequest = {
  prompt: 'a red circle',
  width: 64,
  height: 64,
  numInferenceSteps: 2,
  guidanceScale: 5,
  seeds: [1],
};

describe('A request', () => {
  const any: fc.Arbitrary<TextToImageRequest> = fc
    .record({
      prompt: fc.string({ unit: 'grapheme', maxLength: 400 }),
      negativePrompt: fc.option(fc.string({ maxLength: 40 })),
      numInferenceSteps: fc.integer({ min: 1, max: 20 }),
      scheduler: fc.option(fc.constantFrom(...schedulerNames), { nil: undefined }),
      size: fc.constantFrom([64, 64], [64, 96], [96, 64]),
      guidanceScale: fc.constantFrom(1, 7.5, 20),
      promptWeighting: fc.boolean(),
      seeds: fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 1, maxLength: 2 }),
    })
    .map(({ size: [width, height], ...rest }) => ({ ...rest, width, height }));

  it('of any kind ends with finite latents', async () => {
    const run = async (request: TextToImageRequest) => {
      const { latents, images } = await pipeline.generate(request);
      expect(latents.every((values) => values.every(Number.isFinite))).toBe(true);
      for (const { width, height } of images) expect([width, height]).toEqual([request.width, request.height]);
    };
    await fc.assert(fc.asyncProperty(any, run), { numRuns: 40 });
  });

  it.each(schedulerNames)('stops at the step of an abort, scheduler %s', async (scheduler) => {
    for (const at of [0, 1, 2, 3, 4, 5]) {
      const signal = { aborted: at === 0 };
      let done = 0;
      const running = pipeline.generate(
        { ...small, numInferenceSteps: 6, seeds: [at], scheduler },
        { signal, onStep: (step) => (signal.aborted = (done = step) === at) },
      );
      await expect(running).rejects.toBeInstanceOf(AbortError);
      expect(done).toBe(at);
    }
  });

  it('has a preview at every step, with the size of the latents', async () => {
    const seen: number[] = [];
    await pipeline.generate(
      { ...small, height: 96, numInferenceSteps: 3, seeds: [1, 2], scheduler: 'euler' },
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
  ])('is refused with %s', async (_, change, message) => {
    await expect(pipeline.prepare({ ...small, ...change })).rejects.toThrow(message);
  });
});

describe('A prompt', () => {
  const draw = (prompt: string, change: Partial<TextToImageRequest> = {}) =>
    pipeline.generate({ ...small, prompt, ...change });
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
    const { conditioner } = pipeline.spent;
    await expect(draw(words(32 * 75 + 1))).rejects.toThrow(
      'The prompt takes 33 chunks of 75 tokens; at most 32 can be drawn.',
    );
    expect(pipeline.spent.conditioner).toEqual(conditioner);
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

describe('A model whose arithmetic overflows', () => {
  /** So much guidance overflows float32. */
  const overflowing = { ...small, guidanceScale: Number.MAX_VALUE };

  it('fails with one sentence instead of a black picture', async () => {
    const drawing = pipeline.generate(overflowing);
    await expect(drawing).rejects.toThrow(NotFiniteError);
    await expect(drawing).rejects.toThrow('The model gave numbers that are not finite (from its U-Net)');
  });

  it('fails so in its decoder too, which divides by almost nothing', async () => {
    const config = join(model, 'vae/config.json');
    const before = readFileSync(config, 'utf8');
    writeFileSync(config, JSON.stringify({ ...(JSON.parse(before) as object), scaling_factor: 1e-45 }));
    // Its trial run decodes zeros.
    const other = await Pipeline.load(model, cpu);
    writeFileSync(config, before);
    await expect(other.generate(small)).rejects.toThrow('not finite (from its VAE decoder)');
    await other.release();
  });

  it('fails at the first preview', async () => {
    const trajectories = await pipeline.prepare(overflowing);
    expect(() => pipeline.preview(trajectories[0])).not.toThrow();
    await pipeline.step(trajectories);
    expect(() => pipeline.preview(trajectories[0])).toThrow(NotFiniteError);
  });
});
