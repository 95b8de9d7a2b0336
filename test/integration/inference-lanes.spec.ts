import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Drawing, Engine, type EngineOptions } from '../../apps/inference/src/engine/engine';
import { DrawingAbortedError, EngineLostError } from '../../apps/inference/src/engine/engine-errors';
import type {
  DrawRequest,
  EngineStep,
  ModelLoaded,
  DrawnModel,
  RgbPicture,
} from '../../apps/inference/src/engine/engine-protocol';
import { drawPictures } from '../support/draw-pictures';
import { faultyThread, threadFile } from '../support/inference';
import { shareGraphs } from '../support/shared-graphs';
import { smallRequest } from '../support/small-request';
import { until } from '../support/until';

const folder = join(__dirname, '..', 'golden', 'models', 'tiny', 'sd15-diffusers');
const tiny: DrawnModel = { key: 'tiny', name: 'tiny', folder, hash: 'a'.repeat(64) };

const request = smallRequest;

describe('an engine with two threads, which draws several pictures in lanes', () => {
  let cacheDir: string;
  let engine: Engine;
  const steps: EngineStep[] = [];
  const loaded: ModelLoaded[] = [];

  beforeAll(async () => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-lanes-'));
    shareGraphs(cacheDir);
    engine = engineWith({});
    await untilLanesAreUsed(engine);
  });
  beforeEach(() => void (steps.length = loaded.length = 0));
  afterAll(async () => {
    await engine.close();
    rmSync(cacheDir, { recursive: true, force: true });
  });

  function engineWith({
    memoryBytes,
    intraOpNumThreads = 2,
    ...rest
  }: Partial<EngineOptions> & { memoryBytes?: number; intraOpNumThreads?: number }): Engine {
    return new Engine({
      settings: { device: 'cpu', intraOpNumThreads, memoryBytes, cacheDir },
      stallMs: 60_000,
      threadFile,
      onStep: (step) => steps.push(step),
      onLoaded: (each) => loaded.push(each),
      ...rest,
    });
  }

  const draw = (values: Partial<DrawRequest>, rest: Partial<Drawing> = {}, by = engine) =>
    drawPictures(by, { model: tiny, request: { ...request, ...values }, ...rest });

  const isInLane = ({ stepMs, engineMs }: EngineStep): boolean => engineMs < stepMs;

  /** The lanes are loaded while the first pictures that could use them are drawn. */
  async function untilLanesAreUsed(by: Engine): Promise<void> {
    await until(async () => {
      await draw({ numImages: 2, numInferenceSteps: 50 }, {}, by);
      return steps.some(isInLane);
    }, 'its lanes are used');
  }

  it('draws one picture with all threads, and several in lanes, each the same to the last bit', async () => {
    const kinds = Array.from({ length: 6 }, (_, i) => ({
      prompt: `picture ${i}`,
      seed: i,
      guidanceScale: i % 2 ? 1 : 7.5,
      numInferenceSteps: 5 + 3 * i,
      scheduler: ['euler', 'ddim', 'euler_a', 'dpmpp_2m', 'unipc', 'heun'][i],
    }));
    const alone: RgbPicture[][] = [];
    for (const values of kinds) alone.push(await draw(values));
    expect(steps.some(isInLane)).toBe(false);
    expect(await Promise.all(kinds.map((values) => draw(values)))).toEqual(alone);
    expect(steps.filter(isInLane).length).toBeGreaterThan(10);
  });

  it('hands the pictures of one request on in their order', async () => {
    const alone: RgbPicture[] = [];
    for (const seed of [1, 2, 3, 4, 5]) alone.push(...(await draw({ seed })));
    expect(await draw({ numImages: 5 })).toEqual(alone);
  });

  it('lets go of what is given up while some of its pictures are decoded, and draws the others', async () => {
    const giving = engineWith({ threadFile: faultyThread('givingUp') });
    await untilLanesAreUsed(giving);
    // More pictures than the lanes are at together: when the first is handed on, there are some left.
    const given = draw({ numImages: 16, prompt: 'until a picture' }, {}, giving);
    const other = draw({ seed: 2 }, {}, giving);
    await expect(given).rejects.toThrow(DrawingAbortedError);
    expect(await other).toEqual(await draw({ seed: 2 }));
    await giving.close();
  });

  it('keeps room for the copies in the lanes, and has none where a model is not small against the memory', async () => {
    const [wide, single, small] = [{}, { intraOpNumThreads: 1 }, { memoryBytes: 300 * 2 ** 20 }].map(engineWith);
    for (const each of [wide, single, small]) await draw({ numImages: 4, numInferenceSteps: 2 }, {}, each);
    const [inLanes, alone, without] = loaded.map(({ modelBytes }) => modelBytes);
    expect(inLanes).toBeGreaterThan(2 * alone);
    expect(without).toBe(alone);
    await Promise.all([wide, single, small].map((each) => each.close()));
  });

  it('draws with all threads what has no room in each lane, the same to the last bit', async () => {
    const narrow = engineWith({ memoryBytes: 640 * 2 ** 20 });
    await untilLanesAreUsed(narrow);
    steps.length = 0;
    // Two such pictures and their decoding are estimated to take 590 MiB, one of them half of it; 480 are left beside
    // the model.
    const large = { width: 576, height: 576, numImages: 2, numInferenceSteps: 1 };
    const pictures = await draw(large, {}, narrow);
    expect(steps.some(isInLane)).toBe(false);
    await draw({ numImages: 2 }, {}, narrow);
    expect(steps.some(isInLane)).toBe(true);
    steps.length = 0;
    expect(await draw(large)).toEqual(pictures);
    expect(steps.every(isInLane)).toBe(true);
    await narrow.close();
  });

  it('ends with a lane that dies while it decodes, and starts again', async () => {
    const crashes: Error[] = [];
    const dying = engineWith({ threadFile: faultyThread('dyingLane'), onCrash: (error) => crashes.push(error) });
    const both = await lostByFault(dying);
    for (const error of both) expect(error).toBeInstanceOf(EngineLostError);
    expect(crashes.map(({ cause }) => String(cause))).toEqual([expect.stringContaining('A lane of the engine ended')]);
    expect(await draw({ numImages: 3 }, {}, dying)).toEqual(await draw({ numImages: 3 }));
    await dying.close();
  });

  it('counts as hung when one lane hangs, however much the other has to draw', async () => {
    const stalls: Error[] = [];
    const onStall = (error: Error): void => void stalls.push(error);
    const hanging = engineWith({ threadFile: faultyThread('hangingLane'), stallMs: 1_000, onStall });
    for (const error of await lostByFault(hanging)) expect(error).toBeInstanceOf(EngineLostError);
    expect(stalls).toHaveLength(1);
    await hanging.close(10_000);
  });

  /** What becomes of two drawings of an engine in which the first lane that decodes breaks. */
  async function lostByFault(by: Engine): Promise<unknown[]> {
    // Long enough for the lanes to be loaded, and without an end.
    const long = draw({ numInferenceSteps: 999, numImages: 2, scheduler: 'ddim' }, {}, by);
    const lost = long.catch((error: unknown) => error);
    const drawn = () => draw({ numInferenceSteps: 5 }, {}, by);
    const failed = await until(
      () =>
        drawn().then(
          () => undefined,
          (error: unknown) => error,
        ),
      'a drawing fails',
    );
    return [failed, await lost];
  }
});
