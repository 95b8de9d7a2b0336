import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { schedulerNames } from '@app/diffusion';
import { type DrawOptions, Engine } from '../apps/inference/src/engine-client/engine';
import type { DrawRequest, EngineStep, RgbImage } from '../apps/inference/src/engine/engine-protocol';
import { type BenchOptions, randomFrom } from './section';

/** Long enough that no call at full size on a busy machine counts as hung. */
const stallMs = 3_600_000;

/** A guided picture that sections vary. */
export const someRequest: DrawRequest = {
  prompt: 'a red circle on a blue background',
  negativePrompt: null,
  guidanceScale: 7.5,
  numInferenceSteps: 20,
  seed: 1,
  numImages: 1,
  scheduler: 'euler',
  promptWeighting: false,
  ...{ width: 512, height: 512 },
};

/** The worker's own engine, in its own thread, with its own cache folder. */
export class BenchEngine {
  /** Calls of the denoiser since it was last emptied. */
  readonly steps: EngineStep[] = [];
  private readonly engine: Engine;
  private readonly model: DrawOptions['model'];
  private next = 0;

  private constructor(
    { model, device, threads }: BenchOptions,
    private readonly folder: string,
  ) {
    const name = basename(resolve(model));
    this.model = { key: name, name, folder: resolve(model), hash: '0'.repeat(64) };
    this.engine = new Engine({
      settings: { device, intraOpNumThreads: threads, cacheDir: folder },
      stallMs,
      onStep: (step) => this.steps.push(step),
    });
  }

  /** Resolves when the model is loaded and one picture is drawn. */
  static async start(options: BenchOptions): Promise<BenchEngine> {
    const engine = new BenchEngine(options, mkdtempSync(join(tmpdir(), 'darkroom-bench-')));
    await engine.draw({ numInferenceSteps: 1 });
    return engine;
  }

  /** Each drawing has an owner of its own, unless one is given. */
  async draw(request: Partial<DrawRequest>, rest: Partial<DrawOptions> = {}): Promise<RgbImage[]> {
    const pictures: RgbImage[] = [];
    await this.engine.draw({
      owner: `owner ${this.next++}`,
      model: this.model,
      request: { ...someRequest, ...request },
      onPicture: (index, picture) => (pictures[index] = picture),
      ...rest,
    });
    return pictures;
  }

  async close(): Promise<void> {
    await this.engine.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** @returns milliseconds from the start of a process until its engine has drawn one picture of one step */
export async function firstPictureMs({ model, device, threads }: BenchOptions): Promise<number> {
  const startedAt = performance.now();
  const child = fork(join(__dirname, 'first-picture.js'), [model, device, String(threads)]);
  let drawnAt: number | undefined;
  child.once('message', () => (drawnAt = performance.now()));
  const [code] = (await once(child, 'exit')) as [number | null];
  if (drawnAt === undefined) throw new Error(`The process ended with ${code} before its picture was drawn.`);
  return drawnAt - startedAt;
}

/** Fewest and most steps, and numbers of pictures. Prompts, seeds and schedulers differ anyway. */
export interface RequestMix {
  steps: readonly [number, number];
  pictures: readonly number[];
}

/** Mixed requests; the same seed gives the same ones. */
export function mixedRequests(
  count: number,
  seed: number,
  { steps: [fewest, most], pictures }: RequestMix = { steps: [10, 30], pictures: [1] },
): Partial<DrawRequest>[] {
  const random = randomFrom(seed);
  const of = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)];
  return Array.from({ length: count }, (_, i) => ({
    prompt: `a ${of(['red', 'green', 'yellow', 'white'])} ${of(['circle', 'star', 'square', 'ring'])} on a ${of(['blue', 'black', 'gray'])} background`,
    seed: Math.floor(random() * 2 ** 32),
    scheduler: schedulerNames[i % schedulerNames.length],
    numInferenceSteps: fewest + Math.floor(random() * (most - fewest + 1)),
    numImages: of(pictures),
  }));
}
