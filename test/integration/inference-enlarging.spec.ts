import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelSession, OutOfMemoryError } from '@app/diffusion';
import type { EngineTask } from '../../apps/inference/src/engine/running-task';
import { EngineLoop } from '../../apps/inference/src/engine/engine-loop';
import type { DrawRequest, EngineMessage } from '../../apps/inference/src/engine/engine-protocol';
import { smallRequest } from '../support/small-request';
import { until } from '../support/until';
import { encodeUpscaler } from '../support/upscaler-model';

const tinyFolder = join(__dirname, '..', 'golden', 'models', 'tiny', 'sd15-diffusers');
const tinyRequest = { ...smallRequest, negativePrompt: null, guidanceScale: 1, numInferenceSteps: 1 };

describe('pictures that are enlarged', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-enlarging-'));
  const file = join(folder, 'double.onnx');
  let loop: EngineLoop;
  let told: string[];
  let pictures: { width: number; upscaled: boolean }[];

  beforeAll(() => writeFileSync(file, encodeUpscaler()));
  beforeEach(() => {
    [told, pictures] = [[], []];
    const report = (message: EngineMessage): void => {
      told.push('id' in message ? `${message.id}: ${message.type}` : message.type);
      if (message.type === 'picture') pictures.push({ width: message.picture.width, upscaled: message.upscaled });
    };
    loop = new EngineLoop({ device: 'cpu', intraOpNumThreads: 1, cacheDir: folder }, 2 ** 30, report);
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await loop.close();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const untilTold = (line: string) => until(async () => told.includes(line), `it tells "${line}"`);

  /** Draws for an owner of its own. @param maxLongEdge to which pictures of 64 pixels are enlarged */
  function add(id: number, change: Partial<DrawRequest>, maxLongEdge?: number): EngineTask {
    const task: EngineTask = {
      ...{ id, owner: `owner ${id}`, adapters: [], cancel: new SharedArrayBuffer(4) },
      model: { key: 'tiny', name: 'tiny', folder: tinyFolder, hash: 'a'.repeat(64) },
      request: { ...tinyRequest, ...change },
      ...(maxLongEdge && { upscaler: { key: 'double', name: 'double.onnx', file, maxLongEdge } }),
    };
    loop.add(task);
    return task;
  }

  it('are enlarged as often as their largest size allows, and handed on in order', async () => {
    add(1, { numImages: 2 }, 256);
    await untilTold('1: done');
    expect(pictures).toEqual([256, 256].map((width) => ({ width, upscaled: true })));
    add(2, {}, 100);
    await untilTold('2: done');
    expect(pictures[2]).toEqual({ width: 64, upscaled: false });
  });

  it('let what is drawn beside them go on between two tiles', async () => {
    add(1, { numImages: 2 }, 2048);
    await untilTold('1: busy');
    add(2, { numInferenceSteps: 30 });
    await untilTold('2: done');
    expect(told).not.toContain('1: done');
  });

  it('are enlarged in turns of their owners, one picture at a time', async () => {
    add(1, { numImages: 4 }, 1024);
    await untilTold('1: picture');
    add(2, {}, 1024);
    await untilTold('1: done');
    const ends = told.filter((line) => /picture|done/.test(line));
    expect(ends.indexOf('2: done')).toBeLessThan(ends.lastIndexOf('1: picture'));
  });

  it('are given up at the next tile when their task is canceled', async () => {
    const { cancel } = add(1, { numImages: 4 }, 2048);
    await untilTold('1: picture');
    Atomics.store(new Int32Array(cancel), 0, 1);
    const before = told.filter((line) => line === '1: busy').length;
    await untilTold('1: failed');
    expect(told.filter((line) => line === '1: busy').length).toBeLessThanOrEqual(before + 1);
    expect(told).not.toContain('1: done');
  });

  it('are drawn anew with nothing beside them if there was no memory for a tile, and each is handed on once', async () => {
    const run = Reflect.get<ModelSession, 'run'>(ModelSession.prototype, 'run');
    let tiles = 0;
    jest.spyOn(ModelSession.prototype, 'run').mockImplementation(async function (this: ModelSession, feeds) {
      // The first is the upscaler's trial, and the first picture has one.
      if (feeds.x && ++tiles === 3) throw new Error('Failed to allocate memory for requested buffer of size 536870912');
      return run.call(this, feeds);
    });
    add(1, { numImages: 2 }, 128);
    add(2, { numInferenceSteps: 200 });
    await untilTold('1: done');
    expect(told.indexOf('2: done')).toBeLessThan(told.indexOf('1: done'));
    expect(told.filter((line) => line === '1: picture')).toHaveLength(2);
  });

  it('have the memory of the model that drew them, which they no longer need', async () => {
    const run = Reflect.get<ModelSession, 'run'>(ModelSession.prototype, 'run');
    jest.spyOn(ModelSession.prototype, 'run').mockImplementation(async function (this: ModelSession, feeds) {
      if (feeds.x && !told.includes('released')) throw new OutOfMemoryError('out of memory');
      return run.call(this, feeds);
    });
    add(1, {}, 128);
    await until(async () => told.some((line) => /done|failed/.test(line)), 'it ends');
    expect(pictures).toEqual([{ width: 128, upscaled: true }]);
  });

  it('fail with their task if the file is no upscaler', async () => {
    writeFileSync(join(folder, 'odd.onnx'), 'odd');
    const task = add(1, {});
    task.upscaler = { key: 'odd', name: 'odd.onnx', file: join(folder, 'odd.onnx'), maxLongEdge: 128 };
    await untilTold('1: failed');
  });
});
