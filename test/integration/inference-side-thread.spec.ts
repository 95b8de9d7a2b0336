import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Drawing, Engine, type EngineOptions } from '../../apps/inference/src/engine/engine';
import {
  DrawingAbortedError,
  DrawingRefusedError,
  EngineBrokenError,
  EngineLostError,
  ModelBrokenError,
} from '../../apps/inference/src/engine/engine-errors';
import type { DrawnModel, DrawRequest, EngineStep, RgbPicture } from '../../apps/inference/src/engine/engine-protocol';
import { drawPictures } from '../support/draw-pictures';
import { faultyThread, threadFile } from '../support/inference';
import { shareGraphs } from '../support/shared-graphs';
import { smallRequest } from '../support/small-request';
import { until } from '../support/until';
import { encodeUpscaler } from '../support/upscaler-model';

const models = join(__dirname, '..', 'golden', 'models', 'tiny');
const modelOf = (name: string): DrawnModel => ({
  ...{ key: name, name, folder: join(models, name) },
  hash: 'a'.repeat(64),
});
const tiny = modelOf('sd15-diffusers');
/** Larger than what a model is tried with when it is loaded. */
const request: DrawRequest = { ...smallRequest, numInferenceSteps: 4, width: 128, height: 128 };

describe('an engine with a second thread, as with CUDA', () => {
  let cacheDir: string;
  let upscaler: NonNullable<Drawing['upscaler']>;
  let plain: Engine;
  const opened: Engine[] = [];

  beforeAll(() => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-side-'));
    shareGraphs(cacheDir);
    const file = join(cacheDir, 'double.onnx');
    writeFileSync(file, encodeUpscaler());
    upscaler = { key: 'double', name: 'double.onnx', file, maxLongEdge: 300 };
    plain = engineWith(threadFile);
  });
  beforeEach(() => rmSync(join(cacheDir, 'side-thread'), { force: true }));
  afterAll(async () => {
    await Promise.all(opened.map((engine) => engine.close(10_000)));
    rmSync(cacheDir, { recursive: true, force: true });
  });

  function engineWith(file: string, { memoryBytes, ...rest }: Partial<EngineOptions & { memoryBytes: number }> = {}) {
    const settings = { device: 'cpu', intraOpNumThreads: 1, memoryBytes, cacheDir } as const;
    const engine = new Engine({ settings, stallMs: 60_000, threadFile: file, ...rest });
    opened.push(engine);
    return engine;
  }

  const draw = (by: Engine, values: Partial<DrawRequest> = {}, rest: Partial<Drawing> = {}) =>
    drawPictures(by, { model: tiny, request: { ...request, ...values }, ...rest });

  const errorOf = (drawing: Promise<unknown>): Promise<unknown> => drawing.catch((error: unknown) => error);

  /** What the second thread was asked for, in order. */
  const asked = (): string[] => readFileSync(join(cacheDir, 'side-thread'), 'utf8').trim().split('\n');
  const countOf = (what: string): number => asked().filter((each) => each === what).length;

  it('draws the same to the last bit, encodes, decodes and enlarges in the second thread, and has these parts only there', async () => {
    const side = engineWith(faultyThread('side'));
    const kinds = ['euler', 'euler_a', 'heun'].map((scheduler, i) => ({
      ...{ scheduler, seed: i, prompt: `picture ${i}`, numInferenceSteps: 2 + i, numImages: 1 + (i % 2) },
      guidanceScale: i % 2 ? 1 : 7.5,
    }));
    const owned = (owner: string) => ({ owner, upscaler });
    const alone: RgbPicture[][] = [];
    for (const [i, kind] of kinds.entries()) alone.push(await draw(plain, kind, owned(`owner ${i % 3}`)));
    expect(await Promise.all(kinds.map((kind, i) => draw(side, kind, owned(`owner ${i % 3}`))))).toStrictEqual(alone);
    expect(alone.flat()).toHaveLength(4);
    expect(alone[0][0]).toMatchObject({ width: 256, height: 256 });
    expect(countOf('vaeDecoder')).toBe(4);
    expect(countOf('open')).toBe(2);
    expect(countOf('openFile')).toBe(1);
    // The trial at load, and each request.
    expect(countOf('textEncoder')).toBe(1 + kinds.length);
    expect(countOf('upscaler')).toBeGreaterThan(4);
  });

  it('goes on with calls of the U-Net while a picture is decoded or enlarged', async () => {
    const steps: EngineStep[] = [];
    const patient = engineWith(faultyThread('patientSide'), { onStep: (step) => steps.push(step) });
    const given = new AbortController();
    const endless = errorOf(draw(patient, { numInferenceSteps: 999, scheduler: 'ddim' }, { signal: given.signal }));
    const enlarged = await draw(patient, { seed: 5 }, { upscaler, owner: 'another' });
    given.abort();
    expect(await endless).toBeInstanceOf(DrawingAbortedError);
    expect(enlarged).toStrictEqual(await draw(plain, { seed: 5 }, { upscaler }));
    for (const { stepMs, engineMs } of steps) expect(engineMs).toBeLessThanOrEqual(stepMs);
    expect(steps.some(({ stepMs, engineMs }) => engineMs < 0.6 * stepMs)).toBe(true);
  });

  it('goes on with calls of the U-Net while the text of another is encoded, also for those that came at once', async () => {
    const patient = engineWith(faultyThread('patientEncoderSide'));
    const seeds = [1, 2, 3];
    const values = (seed: number) => ({ seed, prompt: `picture ${seed}`, numInferenceSteps: 20 });
    const pictures = await Promise.all(seeds.map((seed) => draw(patient, values(seed))));
    for (const seed of seeds) expect(pictures[seed - 1]).toStrictEqual(await draw(plain, values(seed)));
  });

  it('decodes more than one picture beside a long call, and charges that call for the time in which nothing was decoded', async () => {
    const steps: EngineStep[] = [];
    const engine = engineWith(faultyThread('longCallsSide'), { onStep: (step) => steps.push(step) });
    const given = new AbortController();
    const endless = errorOf(draw(engine, { numInferenceSteps: 999, scheduler: 'ddim' }, { signal: given.signal }));
    await draw(engine, { numImages: 4 });
    given.abort();
    expect(await endless).toBeInstanceOf(DrawingAbortedError);
    const beside = readFileSync(join(cacheDir, 'decodings-beside'), 'utf8').trim().split('\n').map(Number);
    expect(Math.max(...beside)).toBe(2);
    // A decoding is about a quarter of the call beside it, so of that it has an eighth, and not the half of all of it.
    // Other calls may be shorter than the text that is encoded beside them.
    const lengthened = steps.filter((_, call) => beside[call] > 0);
    for (const { stepMs, engineMs } of lengthened) expect(engineMs).toBeGreaterThan(0.6 * stepMs);
    expect(lengthened.some(({ stepMs, engineMs }) => engineMs < stepMs)).toBe(true);
  });

  it('does not decode what is given up while it waits for the second thread, and releases its model', async () => {
    const released: string[] = [];
    // Enough for all pictures at once, and not for two models.
    const slow = engineWith(faultyThread('slowDecoderSide'), {
      memoryBytes: 80 * 2 ** 20,
      onReleased: (key) => released.push(key),
    });
    const given = new AbortController();
    const drawing = errorOf(draw(slow, { numImages: 4 }, { signal: given.signal }));
    await until(async () => existsSync(join(cacheDir, 'side-thread')), 'the first picture is decoded');
    given.abort();
    writeFileSync(join(cacheDir, 'side-thread-goes-on'), '');
    expect(await drawing).toBeInstanceOf(DrawingAbortedError);
    await draw(slow, {}, { model: modelOf('sd21-optimum') });
    expect([countOf('vaeDecoder'), released]).toEqual([2, [tiny.key]]);
    expect(await draw(slow, { seed: 6 })).toStrictEqual(await draw(plain, { seed: 6 }));
  });

  it('frees what the second thread holds of a model that makes room for another', async () => {
    const released: string[] = [];
    const side = engineWith(faultyThread('side'), { memoryBytes: 1, onReleased: (key) => released.push(key) });
    await draw(side);
    await draw(side, {}, { model: modelOf('sd21-optimum') });
    expect(released).toEqual([tiny.key]);
    expect([countOf('open'), countOf('release')]).toEqual([4, 2]);
    await draw(side, {}, { upscaler });
    expect(released).toContain('sd21-optimum');
    await side.close(60_000);
    expect(countOf('release')).toBe(countOf('open') + countOf('openFile'));
  });

  it('draws anew alone what had no memory in the second thread beside others, and fails what has none alone', async () => {
    const failing = engineWith(faultyThread('failingSide'));
    const seeds = [1, 2, 3];
    const pictures = await Promise.all(seeds.map((seed) => draw(failing, { seed })));
    for (const seed of seeds) expect(pictures[seed - 1]).toStrictEqual(await draw(plain, { seed }));
    const error = (await errorOf(draw(failing, { width: 192 }))) as Error;
    expect(error).toBeInstanceOf(EngineBrokenError);
    expect(error.message).toContain('Failed to allocate memory');
    expect(await draw(failing, { seed: 1 })).toStrictEqual(pictures[0]);
  });

  it('fails a prompt that the text encoder has no memory for, and does not load its model again and again', async () => {
    const failing = engineWith(faultyThread('failingSide'));
    const error = (await errorOf(draw(failing, { prompt: 'a red circle '.repeat(120) }))) as Error;
    expect(error.message).toContain('Failed to allocate memory');
    expect(await draw(failing, { width: 64 })).toHaveLength(1);
  });

  it('tells the errors of the second thread apart, and draws on', async () => {
    const failing = engineWith(faultyThread('failingSide'));
    const sound = draw(failing, { numInferenceSteps: 9, width: 64, height: 64 });
    const lost = (await errorOf(draw(failing, { width: 256 }))) as Error;
    expect(lost).toBeInstanceOf(EngineBrokenError);
    expect(lost.message).toContain('CUDA failure 700');
    expect(await sound).toHaveLength(1);
    const broken = { ...modelOf('broken'), folder: join(cacheDir, 'nothing') };
    expect(await errorOf(draw(failing, {}, { model: broken }))).toBeInstanceOf(ModelBrokenError);
    const file = join(cacheDir, 'no upscaler.onnx');
    writeFileSync(file, 'nothing');
    const refused = (await errorOf(
      draw(failing, { width: 64 }, { upscaler: { ...upscaler, key: file, file } }),
    )) as Error;
    expect(refused).toBeInstanceOf(DrawingRefusedError);
    expect(refused.message).toBe('The upscaler double.onnx cannot be used: ONNX Runtime refuses it.');
    expect(await draw(failing, { width: 64 }, { upscaler })).toHaveLength(1);
  });

  it('ends with a second thread that dies, and starts again', async () => {
    const crashes: Error[] = [];
    const dying = engineWith(faultyThread('dyingSide'), { onCrash: (error) => crashes.push(error) });
    const both = [draw(dying), draw(dying, { numInferenceSteps: 999, scheduler: 'ddim' })];
    for (const drawing of both) expect(await errorOf(drawing)).toBeInstanceOf(EngineLostError);
    expect(crashes.map(({ cause }) => String(cause))).toEqual([
      expect.stringContaining('The second thread of the engine ended'),
    ]);
    expect(await draw(dying)).toStrictEqual(await draw(plain));
  });

  it('counts as hung when its second thread hangs, however much the U-Net has to draw', async () => {
    const stalls: Error[] = [];
    const steps: EngineStep[] = [];
    const hanging = engineWith(faultyThread('hangingSide'), {
      stallMs: 5_000,
      onStep: (step) => steps.push(step),
      onStall: (error) => {
        stalls.push(error);
        writeFileSync(join(cacheDir, 'hanging-side-thread-ends'), '');
      },
    });
    let decoded: Promise<unknown> | undefined;
    const endless = { numInferenceSteps: 999, scheduler: 'ddim', width: 64, height: 64 };
    // It is encoded before the thread hangs.
    const onStarted = (): void => void (decoded = errorOf(draw(hanging)));
    expect(await errorOf(draw(hanging, endless, { onStarted }))).toBeInstanceOf(EngineLostError);
    expect(await decoded).toBeInstanceOf(EngineLostError);
    expect(stalls).toHaveLength(1);
    expect(steps.length).toBeLessThan(endless.numInferenceSteps);
  });

  it('lets go at once of what is given up while it is decoded, and draws the others', async () => {
    const patient = engineWith(faultyThread('patientSide'));
    const other = draw(patient, { seed: 2, numInferenceSteps: 40 });
    const given = new AbortController();
    const decoded = draw(patient, { numImages: 4 }, { signal: given.signal, onPicture: () => given.abort() });
    expect(await errorOf(decoded)).toBeInstanceOf(DrawingAbortedError);
    const endless = new AbortController();
    const beside = errorOf(draw(patient, { numInferenceSteps: 999, scheduler: 'ddim' }, { signal: endless.signal }));
    expect(await other).toStrictEqual(await draw(plain, { seed: 2, numInferenceSteps: 40 }));
    endless.abort();
    await beside;
  });
});
