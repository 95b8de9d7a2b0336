import type { Denoising, RgbImage, TextToImageRequest } from '@app/diffusion';
import { AbortError, schedulerNames as drawnSchedulerNames } from '@app/diffusion';
import { schedulerNames } from '@app/domain';
import type { DrawingHooks, Painter } from './drawing';
import { drawPictures } from './drawing';
import type { DrawingProgress, DrawRequest } from './engine-protocol';

/** Draws pictures of one pixel whose value is the last byte of the seed; counts its calls. */
class FakePainter {
  readonly facts = { scheduler: 'pndm' } as Painter['facts'];
  readonly prepared: TextToImageRequest[] = [];
  steps = 0;

  async prepare(request: TextToImageRequest): Promise<Denoising> {
    this.prepared.push(request);
    const images = request.seeds.map((seed) => ({ seed }));
    return {
      images,
      shape: [4, 1, 1],
      promptChunks: 2,
      stepIndex: 0,
      totalSteps: request.numInferenceSteps + 1,
    } as never;
  }

  async step(denoising: Denoising): Promise<boolean> {
    this.steps++;
    return ++denoising.stepIndex < denoising.totalSteps;
  }

  async decode({ images }: Pick<Denoising, 'images'>): Promise<RgbImage[]> {
    return images.map(({ seed }) => ({ width: 1, height: 1, data: new Uint8Array([seed % 256]) }));
  }

  preview(): RgbImage {
    return { width: 1, height: 1, data: new Uint8Array(3) };
  }
}

const request: DrawRequest = {
  prompt: 'a red circle',
  negativePrompt: null,
  guidanceScale: 7.5,
  numInferenceSteps: 3,
  seed: 2 ** 32 - 2,
  numImages: 3,
  scheduler: null,
  width: 512,
  height: 512,
  promptWeighting: false,
};

function hooksOf(isAborted: (step: number) => boolean = () => false) {
  const progress: DrawingProgress[] = [];
  const pictures: RgbImage[] = [];
  const started = jest.fn();
  const hooks: DrawingHooks = {
    aborted: () => isAborted(progress.length),
    started,
    progress: (told) => progress.push(told),
    picture: (index, picture) => (pictures[index] = picture),
  };
  return { hooks, progress, pictures, started };
}

describe(drawPictures.name, () => {
  it('draws in batches, each picture with its seed, which wraps around after the largest', async () => {
    const painter = new FakePainter();
    const { hooks, pictures } = hooksOf();
    await drawPictures(painter, request, 2, hooks);
    expect(painter.prepared.map(({ seeds }) => seeds)).toEqual([[2 ** 32 - 2, 2 ** 32 - 1], [0]]);
    expect(pictures.map(({ data }) => data[0])).toEqual([254, 255, 0]);
  });

  it('counts the calls of the U-Net over all batches', async () => {
    const { hooks, progress, started } = hooksOf();
    await drawPictures(new FakePainter(), request, 2, hooks);
    expect(progress.map(({ step, total }) => `${step}/${total}`)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `${n}/8`),
    );
    expect(started.mock.calls).toEqual([[{ promptChunks: 2, scheduler: 'pndm' }]]);
  });

  it('leaves the scheduler to the model unless one is named', async () => {
    const painter = new FakePainter();
    await drawPictures(painter, { ...request, numImages: 1 }, 8, hooksOf().hooks);
    await drawPictures(painter, { ...request, numImages: 1, scheduler: 'euler' }, 8, hooksOf().hooks);
    expect(painter.prepared.map(({ scheduler }) => scheduler)).toEqual([undefined, 'euler']);
  });

  it('makes no further step once it is aborted, and no picture', async () => {
    const painter = new FakePainter();
    const { hooks, pictures } = hooksOf((step) => step >= 2);
    await expect(drawPictures(painter, request, 8, hooks)).rejects.toThrow(AbortError);
    expect(painter.steps).toBe(2);
    expect(pictures).toEqual([]);
  });

  it('prepares nothing if it is aborted from the start', async () => {
    const painter = new FakePainter();
    await expect(drawPictures(painter, request, 8, hooksOf(() => true).hooks)).rejects.toThrow(AbortError);
    expect(painter.prepared).toEqual([]);
  });
});

it('knows the schedulers that the API offers', () => {
  expect([...drawnSchedulerNames].sort()).toEqual([...schedulerNames].sort());
});
