import type { RgbImage } from '../engine/engine-protocol';
import { type SandboxDrawing, SandboxEngine } from './sandbox-engine';

describe(SandboxEngine.name, () => {
  const request = {
    prompt: 'a star over Berlin',
    negativePrompt: null,
    guidanceScale: 7,
    numInferenceSteps: 5,
    seed: 4_294_967_295,
    numImages: 2,
    scheduler: null,
    width: 512,
    height: 768,
    promptWeighting: false,
  };
  const model = { key: 'sandbox', name: 'sandbox', folder: '', hash: '' };

  /** Draws, and returns what it told: the steps with the time of each, and the pictures. */
  async function draw(asked: Partial<SandboxDrawing> = {}) {
    const createdAt = new Date();
    const steps: { step: number; ms: number }[] = [];
    const pictures: RgbImage[] = [];
    await new SandboxEngine({ createdAt, delayMs: 0, promptChunks: 1, ...asked }).draw({
      owner: 'somebody',
      model,
      request,
      onProgress: ({ step }) => steps.push({ step, ms: Date.now() - createdAt.getTime() }),
      onPicture: (_, picture) => pictures.push(picture),
    });
    return { steps, pictures };
  }
  const pixel = ({ data, width }: RgbImage, x: number, y: number) => [
    ...data.subarray((y * width + x) * 3).slice(0, 3),
  ];

  it('draws hatched pictures of the right size, each in a color of its own, with SANDBOX in red letters', async () => {
    const { pictures } = await draw();
    expect(pictures.map(({ width, height }) => [width, height])).toEqual([
      [512, 768],
      [512, 768],
    ]);
    const [first, second] = pictures.map((picture) => [pixel(picture, 0, 0), pixel(picture, 23, 0)]);
    // The hues 15 and 0: the second seed is 0 again.
    expect(first).toEqual([
      [231, 175, 157],
      [237, 195, 182],
    ]);
    expect(second).toEqual([
      [231, 157, 157],
      [237, 182, 182],
    ]);
    const isRed = (x: number, y: number) => pixel(pictures[0], x, y).join() === '176,0,32';
    const marked = Array.from({ length: 768 }, (_, y) => y).filter((y) =>
      [...Array(512).keys()].some((x) => isRed(x, y)),
    );
    expect([marked[0], marked.length, marked.at(-1)]).toEqual([304, 70, 373]);
  });

  it('spreads the steps over the delay, which begins when the task was made', async () => {
    const { steps } = await draw({ delayMs: 100 });
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
    for (const { step, ms } of steps) expect(ms).toBeGreaterThanOrEqual(step * 20 - 2);
    const late = await draw({ delayMs: 600_000, createdAt: new Date(Date.now() - 600_000) });
    expect(late.pictures).toHaveLength(2);
  });
});
