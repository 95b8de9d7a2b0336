import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DrawOptions, Engine, type EngineOptions } from '../../apps/inference/src/engine-client/engine';
import { TaskAbortedError, TaskRefusedError } from '../../apps/inference/src/engine-client/task-errors';
import type {
  DrawingProgress,
  DrawRequest,
  EngineStep,
  ModelSource,
  RgbImage,
} from '../../apps/inference/src/engine/engine-protocol';
import { faultyThread, threadFile } from '../support/inference';
import { writeLoras } from '../support/loras';
import { smallRequest } from '../support/small-request';

const models = join(__dirname, '..', 'golden', 'models', 'tiny');
const source = (name: string): ModelSource => ({ key: name, name, folder: join(models, name), hash: 'a'.repeat(64) });
const diffusers = source('sd15-diffusers');
const optimum = source('sd21-optimum');

/** A drawing and how it is told apart. */
type Named = [name: string, drawing: Promise<unknown>];

const request = smallRequest;

describe('requests that one engine draws side by side', () => {
  let cacheDir: string;
  let engine: Engine;
  const steps: EngineStep[] = [];

  beforeAll(() => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-sharing-'));
    engine = engineWith({});
  });
  beforeEach(() => void (steps.length = 0));
  afterAll(async () => {
    await engine.close();
    rmSync(cacheDir, { recursive: true, force: true });
  });

  function engineWith({ memoryBytes, ...rest }: Partial<EngineOptions> & { memoryBytes?: number }): Engine {
    return new Engine({
      settings: { device: 'cpu', intraOpNumThreads: 1, memoryBytes, cacheDir },
      stallMs: 60_000,
      threadFile,
      onStep: (step) => steps.push(step),
      ...rest,
    });
  }

  async function draw(values: Partial<DrawRequest>, rest: Partial<DrawOptions> = {}, by = engine): Promise<RgbImage[]> {
    const pictures: RgbImage[] = [];
    await by.draw({
      owner: 'somebody',
      model: diffusers,
      request: { ...request, ...values },
      onPicture: (index, picture) => (pictures[index] = picture),
      ...rest,
    });
    return pictures;
  }

  /** Names of drawings in the order in which they ended. */
  async function order(drawings: Named[]): Promise<string[]> {
    const ended: string[] = [];
    await Promise.all(drawings.map(([name, drawing]) => drawing.then(() => ended.push(name))));
    return ended;
  }

  const eight = Array.from({ length: 8 }, (_, i) => i);

  it('share calls of the U-Net, and each picture is the one that is drawn alone, to the last bit', async () => {
    const requests = eight.map((i) => ({
      prompt: `picture ${i}`,
      seed: i,
      guidanceScale: i % 2 ? 1 : 5 + i,
      numInferenceSteps: 6 + i,
      scheduler: ['euler', 'ddim', 'euler_a', 'dpmpp_2m', 'unipc', 'lcm', 'heun', null][i],
    }));
    const together = await Promise.all(requests.map((values, i) => draw(values, { owner: `owner ${i}` })));
    // How many is found out by measuring, which other programs disturb.
    expect(Math.max(...steps.map(({ drawings }) => drawings))).toBeGreaterThanOrEqual(2);
    for (const [i, values] of requests.entries()) expect(together[i]).toStrictEqual(await draw(values));
  });

  it('end in the order of what they need: a short one does not wait for eight long ones', async () => {
    const long = eight.map((i): Named => [`long ${i}`, draw({ numInferenceSteps: 30, seed: i })]);
    expect((await order([...long, ['short', draw({ numInferenceSteps: 4 })]]))[0]).toBe('short');
  });

  it('have the same part of the engine for each owner, however many each has', async () => {
    // One picture a call, so that owners compete; the one that needs most steps would be the last without a share of
    // its own.
    const small = engineWith({ memoryBytes: 1 });
    // Loading the model is charged to whoever begins first, and takes longer than all of these.
    await draw({ numInferenceSteps: 1 }, { owner: 'first' }, small);
    const greedy = eight.map((i): Named => {
      const drawing = draw({ numInferenceSteps: 20, seed: i }, { owner: 'greedy' }, small);
      return [`greedy ${i}`, drawing];
    });
    const modest = draw({ numInferenceSteps: 40 }, { owner: 'modest' }, small);
    const ended = await order([...greedy, ['modest', modest]]);
    await small.close();
    expect(ended.indexOf('modest')).toBeLessThan(ended.length - 1);
  });

  it('have that part also where one owner’s pictures need little but decoding', async () => {
    const many = { numInferenceSteps: 1, numImages: 8, guidanceScale: 1 };
    const greedy = Array.from({ length: 30 }, (_, i): Named => [
      `greedy ${i}`,
      draw({ ...many, seed: i }, { owner: 'greedy' }),
    ]);
    const ended = await order([...greedy, ['modest', draw({ numInferenceSteps: 30 }, { owner: 'modest' })]]);
    expect(ended.indexOf('modest')).toBeLessThan(ended.length - 2);
  });

  it('go on beside short ones of the same owner, however many come', async () => {
    const most = 300;
    let shortOnes = 0;
    let isDone = false;
    const long = draw({ numInferenceSteps: 30 }).then(() => (isDone = true));
    const stream = async (): Promise<void> => {
      while (!isDone && shortOnes < most)
        await draw({ seed: shortOnes++, numInferenceSteps: 3, guidanceScale: 1, width: 128 });
    };
    await Promise.all([stream(), stream(), stream()]);
    expect(shortOnes).toBeLessThan(most);
    await long;
  });

  it('are drawn with several models at once without mixing them up', async () => {
    const both = [draw({}), draw({}, { model: optimum }), draw({ seed: 2 }), draw({ seed: 2 }, { model: optimum })];
    const [first, second, third, fourth] = await Promise.all(both);
    expect(first).toStrictEqual(await draw({}));
    expect(second).toStrictEqual(await draw({}, { model: optimum }));
    expect(third).toStrictEqual(await draw({ seed: 2 }));
    expect(fourth).toStrictEqual(await draw({ seed: 2 }, { model: optimum }));
  });

  it('take fewer rows a call where there is less memory, and are all drawn', async () => {
    const small = engineWith({ memoryBytes: 1 });
    const pictures = await Promise.all(eight.map((seed) => draw({ seed, numInferenceSteps: 3 }, {}, small)));
    await small.close();
    expect(new Set(steps.map(({ pictures: count }) => count))).toEqual(new Set([1]));
    expect(pictures[3]).toStrictEqual(await draw({ seed: 3, numInferenceSteps: 3 }));
  });

  it('go on where one of them fails, and each picture is the one that is drawn alone', async () => {
    const faulty = engineWith({ threadFile: faultyThread('faultyPicture') });
    const others = eight.map((seed) => draw({ seed, numInferenceSteps: 6 }, { owner: `owner ${seed}` }, faulty));
    await expect(draw({ prompt: 'faulty', numInferenceSteps: 6 }, {}, faulty)).rejects.toThrow('It fails on purpose.');
    const pictures = await Promise.all(others);
    await faulty.close();
    for (const seed of eight) expect(pictures[seed]).toStrictEqual(await draw({ seed, numInferenceSteps: 6 }));
  });

  it('share calls with those of other Fine-Tunes and of none, and each is the picture that is drawn alone', async () => {
    const files = await writeLoras(diffusers.folder, cacheDir, [4, 4, 2]);
    const tuned = files.map((file, i): Partial<DrawOptions> => {
      return { adapters: [{ kind: 'lora', file, hash: `${i}`, scale: 1 - i / 8, token: '' }] };
    });
    // So long that two rows and four are measured more than once: other programs disturb that.
    await Promise.all([0, 1].map((seed) => draw({ seed, numInferenceSteps: 400 }, tuned[seed])));
    expect(Math.max(...steps.map(({ drawings }) => drawings))).toBe(2);
    // So long that each is still being drawn when the files of the others have been read.
    const drawn = (seed: number, rest: Partial<DrawOptions>) => draw({ seed, numInferenceSteps: 100 }, rest);
    const all = [...tuned, {}, {}];
    const pictures = await Promise.all(all.map((rest, seed) => drawn(seed, { owner: `owner ${seed}`, ...rest })));
    for (const [seed, rest] of all.entries()) expect(pictures[seed]).toStrictEqual(await drawn(seed, rest));
    const [plain, ...others] = await Promise.all([{}, ...tuned].map((rest) => drawn(1, rest)));
    for (const other of others) expect(other).not.toStrictEqual(plain);
  });

  it('join, end, fail and are given up at any moment without a wrong picture or a drawing that never ends', async () => {
    const tasks = 200;
    const kinds = eight.map((i) => ({
      prompt: `picture ${i}`,
      seed: i,
      numInferenceSteps: 2 + i,
      numImages: 1 + (i % 3),
      guidanceScale: i % 2 ? 1 : 7.5,
      ...(i === 5 && { width: 128 }),
    }));
    const files = await writeLoras(diffusers.folder, cacheDir, [4, 2]);
    const adapted = files.map((file, i): Partial<DrawOptions> => {
      return { adapters: [{ kind: 'lora', file, hash: `random ${i}`, scale: 1, token: '' }] };
    });
    const tuned = (i: number): Partial<DrawOptions> => adapted[i % 3] ?? {};
    const expected: RgbImage[][] = [];
    for (const [i, values] of kinds.entries()) expected.push(await draw(values, tuned(i)));
    const one = async (i: number): Promise<void> => {
      const owner = `owner ${i % 5}`;
      if (i % 11 === 0) {
        await expect(draw({ width: 60 }, { owner })).rejects.toThrow(TaskRefusedError);
      } else if (i % 7 === 0) {
        const stop = new AbortController();
        const giveUp = ({ step }: DrawingProgress): void => (step >= i % 4 ? stop.abort() : undefined);
        const endless = { numInferenceSteps: 500, numImages: 1 + (i % 4), scheduler: 'ddim' };
        const drawing = draw(endless, { owner, signal: stop.signal, onProgress: giveUp });
        await expect(drawing).rejects.toThrow(TaskAbortedError);
      } else {
        const kind = i % kinds.length;
        expect(await draw(kinds[kind], { owner, ...tuned(kind) })).toStrictEqual(expected[kind]);
      }
    };
    let next = 0;
    // So many are in the engine at once.
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        while (next < tasks) await one(next++);
      }),
    );
  });
});
