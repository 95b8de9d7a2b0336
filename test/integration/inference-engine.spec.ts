import { cpSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DrawOptions, Engine, type EngineOptions } from '../../apps/inference/src/engine-client/engine';
import { TaskAbortedError, TaskRefusedError } from '../../apps/inference/src/engine-client/task-errors';
import type {
  DrawingProgress,
  ModelSource,
  DrawRequest,
  EngineSettings,
  ModelLoaded,
  RgbImage,
} from '../../apps/inference/src/engine/engine-protocol';
import { faultyThread, threadFile } from '../support/inference';
import { psnr } from '../support/psnr';
import { until } from '../support/until';

const root = join(__dirname, '..', '..');
const shapes: ModelSource = {
  key: 'shapes',
  name: 'shapes',
  folder: join(root, 'models', 'shapes'),
  hash: 'a'.repeat(64),
};
const request: DrawRequest = {
  prompt: 'a red circle on a blue background',
  negativePrompt: 'green',
  guidanceScale: 7.5,
  numInferenceSteps: 3,
  seed: 4_294_967_295,
  numImages: 1,
  scheduler: 'euler_a',
  width: 256,
  height: 256,
  promptWeighting: false,
};

describe(Engine.name, () => {
  let cacheDir: string;
  let engine: Engine;
  const loaded: ModelLoaded[] = [];
  const options = (change: Partial<EngineSettings> = {}): EngineOptions => ({
    settings: { device: 'cpu', intraOpNumThreads: 1, cacheDir, ...change },
    stallMs: 60_000,
    threadFile,
    onLoaded: (report) => loaded.push(report),
  });

  beforeAll(() => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-engine-'));
    engine = new Engine(options());
  });

  afterAll(async () => {
    await engine.close();
    rmSync(cacheDir, { recursive: true, force: true });
  });

  async function draw(
    values: Partial<DrawRequest> = {},
    rest: Partial<DrawOptions> = {},
    by = engine,
  ): Promise<RgbImage[]> {
    const pictures: RgbImage[] = [];
    await by.draw({
      owner: 'somebody',
      model: shapes,
      request: { ...request, ...values },
      onPicture: (index, picture) => (pictures[index] = picture),
      ...rest,
    });
    return pictures;
  }

  it('does not start on a device that was asked for and is not there, and says why', async () => {
    const missing = new Engine(options({ device: 'cuda:99' }));
    await expect(missing.start()).rejects.toThrow(/^DEVICE names cuda:99, which cannot be used here: [^\n]+$/);
    await missing.close();
  });

  it('draws the pictures of a request like each of them alone, with seeds that wrap around after the largest', async () => {
    const together = await draw({ numImages: 3 });
    expect(together).toHaveLength(3);
    const seeds = [4_294_967_295, 0, 1];
    for (const [i, seed] of seeds.entries()) {
      const [alone] = await draw({ seed });
      expect(psnr(together[i], alone)).toBeGreaterThanOrEqual(60);
    }
    expect(psnr(together[0], together[1])).toBeLessThan(40);
  });

  it('reports each call of the U-Net, and the model and scheduler', async () => {
    const progress: DrawingProgress[] = [];
    const onStarted = jest.fn();
    await draw({ scheduler: null }, { onStarted, onProgress: (told) => progress.push(told) });
    expect(onStarted).toHaveBeenCalledTimes(1);
    expect(onStarted).toHaveBeenCalledWith(expect.objectContaining({ promptChunks: 1, scheduler: 'pndm' }));
    const total = progress[0].total;
    expect(progress.map(({ step }) => step)).toEqual(Array.from({ length: total }, (_, i) => i + 1));
  });

  it('makes no other step for a drawing that was given up', async () => {
    const giving = new Engine({ ...options(), threadFile: faultyThread('givingUp'), onLoaded: () => undefined });
    const steps: number[] = [];
    const onProgress = ({ step }: DrawingProgress): void => void steps.push(step);
    const drawing = draw({ prompt: 'until step 5', numInferenceSteps: 50 }, { onProgress }, giving);
    await expect(drawing).rejects.toThrow(TaskAbortedError);
    expect(steps).toEqual([1, 2, 3, 4, 5]);
    await giving.close();
  });

  it('stops at an abort long before its end, and draws the next request', async () => {
    const stop = new AbortController();
    const steps: number[] = [];
    const drawing = draw(
      // Steps with many large pictures take long, so that a busy machine does not finish them before the abort arrives.
      { numInferenceSteps: 50, numImages: 8, width: 512, height: 512 },
      {
        signal: stop.signal,
        onProgress: ({ step }) => {
          steps.push(step);
          if (step === 5) stop.abort();
        },
      },
    );
    await expect(drawing).rejects.toThrow(TaskAbortedError);
    expect(steps.at(-1)).toBeLessThan(25);
    expect(await draw()).toHaveLength(1);
  });

  it('does not begin a request that is already aborted', async () => {
    const onStarted = jest.fn();
    await expect(draw({}, { signal: AbortSignal.abort(), onStarted })).rejects.toThrow(TaskAbortedError);
    expect(onStarted).not.toHaveBeenCalled();
  });

  it('rejects a request that the model cannot draw, naming the value', async () => {
    await expect(draw({ width: 500 })).rejects.toThrow(
      new TaskRefusedError('The width is 500; this model draws multiples of 32 pixels.'),
    );
  });

  it('rejects a truncated model without naming a path of this machine, and keeps running', async () => {
    const folder = join(cacheDir, 'cut');
    cpSync(shapes.folder, folder, { recursive: true });
    truncateSync(join(folder, 'unet', 'diffusion_pytorch_model.safetensors'), 100_000);
    const error = await draw({}, { model: { key: 'cut', name: 'cut', folder, hash: 'b'.repeat(64) } }).catch(
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(TaskRefusedError);
    expect((error as Error).message).toMatch(/^The model cut cannot be drawn with: unet/);
    expect((error as Error).message).not.toContain(cacheDir);
    expect(await draw()).toHaveLength(1);
  });

  it('reports a loaded model with its time and size, once', async () => {
    expect(loaded.filter(({ key }) => key === 'shapes')).toEqual([
      expect.objectContaining({ modelBytes: expect.any(Number) as number }),
    ]);
    expect(loaded[0].loadMs).toBeGreaterThan(0);
  });

  it('releases the least recently used model when memory is short', async () => {
    const released: string[] = [];
    const onReleased = (key: string): void => void released.push(key);
    const small = new Engine({ ...options({ memoryBytes: 40 * 2 ** 20 }), onReleased });
    await draw({ numInferenceSteps: 1 }, {}, small);
    await draw({ numInferenceSteps: 1 }, { model: { ...shapes, key: 'shapes again' } }, small);
    // What has encoded the texts of a picture makes room for what draws it.
    expect(released).toEqual(['shapes texts', 'shapes', 'shapes again texts']);
    expect([...small.loadedKeys]).toEqual(['shapes again']);
    await small.close();
  });

  it('takes no pause of the whole process for a thread that hangs', async () => {
    const onStall = jest.fn();
    // Many times what a busy machine takes to decode a picture, during which the thread says nothing either.
    const stallMs = 5_000;
    const paused = new Engine({ ...options(), stallMs, onStall });
    await draw({}, {}, paused);
    const drawing = draw({ numInferenceSteps: 40 }, {}, paused);
    await until(async () => paused.state.pictures > 0, 'it draws');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs + 500);
    expect(await drawing).toHaveLength(1);
    expect(onStall).not.toHaveBeenCalled();
    await paused.close();
  });
});
