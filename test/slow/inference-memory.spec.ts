import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ModelSession, OutOfMemoryError, Pipeline } from '@app/diffusion';
import { type DrawOptions, Engine } from '../../apps/inference/src/engine-client/engine';
import { EngineBrokenError } from '../../apps/inference/src/engine-client/task-errors';
import { EngineLoop } from '../../apps/inference/src/engine/engine-loop';
import type {
  DrawRequest,
  DrawTask,
  EngineMessage,
  EngineStep,
  Failure,
  ModelSource,
} from '../../apps/inference/src/engine/engine-protocol';
import { drawPictures } from '../support/draw-pictures';
import { unpackFamily } from '../support/families';
import { faultyThread, threadFile } from '../support/inference';
import { smallRequest } from '../support/small-request';
import { until } from '../support/until';

const plainFolder = join(__dirname, '..', 'golden', 'models', 'tiny', 'sd15-diffusers');
const source = (name: string, folder: string): ModelSource => ({ key: name, name, folder, hash: name.padEnd(64, '0') });
const plain = source('plain', plainFolder);

const request = { ...smallRequest, numInferenceSteps: 6 };

/** What encodes texts is needed before a picture begins, and is released while it is drawn. */
const isOfTexts = (message: EngineMessage): boolean => 'key' in message && message.key.endsWith(' texts');

describe('an engine whose memory does not suffice', () => {
  let folder: string;
  let engine: Engine;
  const steps: EngineStep[] = [];

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-memory-'));
    engine = engineOf(threadFile);
  });
  beforeEach(() => void (steps.length = 0));
  afterAll(async () => {
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function engineOf(file: string): Engine {
    return new Engine({
      settings: { device: 'cpu', intraOpNumThreads: 1, cacheDir: join(folder, 'cache') },
      stallMs: 60_000,
      threadFile: file,
      onStep: (step) => steps.push(step),
    });
  }

  /** A loop in this process, which has much memory. */
  const loopOf = (report: (message: EngineMessage) => void): EngineLoop =>
    new EngineLoop({ device: 'cpu', intraOpNumThreads: 1, cacheDir: join(folder, 'cache') }, 2 ** 30, report);

  /** A task of one owner with the plain model. */
  const taskOf = (id: number, change: Partial<DrawTask> = {}): DrawTask => ({
    ...{ id, owner: 'one', model: plain, adapters: [], request, cancel: new SharedArrayBuffer(4) },
    ...change,
  });

  const draw = (values: Partial<DrawRequest>, rest: Partial<DrawOptions> = {}, by = engine) =>
    drawPictures(by, { model: plain, request: { ...request, ...values }, ...rest });

  it('draws fewer pictures in a call after one that was too large, and the same ones', async () => {
    const small = engineOf(faultyThread('smallMemory'));
    const pictures = await draw({ numImages: 3, numInferenceSteps: 12 }, {}, small);
    expect(steps.map(({ rows }) => rows)).toEqual(Array.from({ length: 3 * 12 }, () => 2));
    expect(pictures).toEqual(await draw({ numImages: 3, numInferenceSteps: 12 }));
    await small.close();
  });

  it('gives up a model that was in use when another process needed its room', async () => {
    const said: string[] = [];
    const loop = loopOf((message) => {
      if (isOfTexts(message)) return;
      said.push(message.type);
      if (message.type === 'started') loop.reserve(2 ** 30);
    });
    loop.add(taskOf(1));
    await until(async () => said.includes('released'), 'the model is released');
    expect(said.indexOf('done')).toBeLessThan(said.indexOf('released'));
    expect(said).toContain('done');
    await loop.close();
  });

  it.each([
    ['at once, if it fits beside what is drawn', 2 ** 10, ['started', 'reserved', 'done']],
    ['once what is drawn has ended, and no longer', 2 ** 30, ['started', 'done', 'reserved']],
  ])('lets another process have its room %s', async (_, bytes, order) => {
    const said: string[] = [];
    let next = 1;
    const loop = loopOf(({ type }) => {
      said.push(type);
      if (type === 'started' && next === 2) loop.reserve(bytes);
      // The model is always in use.
      if (type === 'progress' && next < 5) draw();
    });
    const draw = () => loop.add(taskOf(next++));
    draw();
    await until(async () => said.filter((type) => type === 'done').length === 4, 'all is drawn');
    expect([...new Set(said)].filter((type) => order.includes(type))).toEqual(order);
    expect(said.filter((type) => type === 'reserved')).toHaveLength(1);
    expect(said.indexOf('reserved')).toBeLessThan(said.lastIndexOf('done'));
    await loop.close();
  });

  it('tells another process that it may have its room, which asked while a model was being released', async () => {
    const said: string[] = [];
    const loop = loopOf((message) => {
      const { type } = message;
      if (isOfTexts(message)) return;
      said.push(type);
      if (type === 'started') loop.reserve(2 ** 30);
      if (type === 'released') loop.reserve(2 ** 20);
    });
    loop.add(taskOf(1));
    await until(
      async () => said.filter((type) => type === 'reserved').length === 2,
      'it is told a second time',
      20_000,
    );
    await loop.close();
  });

  it('begins a task with nothing beside it that found no memory beside others, also without the models that these leave', async () => {
    const prepare = Reflect.get<Pipeline, 'prepare'>(Pipeline.prototype, 'prepare');
    const loaded = new Set<string>();
    jest.spyOn(Pipeline.prototype, 'prepare').mockImplementation(function (this: Pipeline, ...values) {
      if (loaded.has('late') && loaded.size > 1) throw new OutOfMemoryError('out of memory');
      return prepare.apply(this, values);
    });
    const ended: string[] = [];
    const loop = loopOf((message) => {
      if (isOfTexts(message)) return;
      if (message.type === 'loaded') loaded.add(message.key);
      if (message.type === 'released') loaded.delete(message.key);
      if (message.type === 'done' || message.type === 'failed') ended.push(`${message.id} ${message.type}`);
      if (message.type === 'done' && message.id === 1) draw(2, 'beside', 40);
      if (message.type === 'started' && message.id === 2) draw(3, 'late');
    });
    const draw = (id: number, name: string, numInferenceSteps = 6) =>
      loop.add(
        taskOf(id, { owner: name, model: source(name, plainFolder), request: { ...request, numInferenceSteps } }),
      );
    draw(1, 'before');
    await until(async () => ended.length === 3, 'all have ended');
    await loop.close();
    jest.restoreAllMocks();
    expect(ended).toEqual(['1 done', '2 done', '3 done']);
    expect([...loaded]).toEqual([]);
  });

  describe('fails what cannot begin for want of memory', () => {
    afterEach(() => jest.restoreAllMocks());

    /**
     * Adds tasks to a loop that can prepare none, until all have failed.
     * @returns keys of what was loaded, and failures
     */
    async function failAll(tasks: Pick<DrawTask, 'model' | 'request'>[]) {
      const fault = new RangeError('Array buffer allocation failed');
      jest.spyOn(Pipeline.prototype, 'prepare').mockRejectedValue(fault);
      const loaded: string[] = [];
      const failures: Failure[] = [];
      const loop = loopOf((message) => {
        if (message.type === 'loaded') loaded.push(message.key);
        if (message.type === 'failed') failures.push(message);
      });
      for (const [id, task] of tasks.entries()) loop.add(taskOf(id, { ...task, owner: `owner ${id}` }));
      await until(async () => failures.length === tasks.length, 'all have failed');
      await loop.close();
      for (const failure of failures) expect(failure).toMatchObject({ failure: 'broken', outOfMemory: true });
      return loaded;
    }

    it('though it has loaded ControlNets that could make room', async () => {
      await unpackFamily('sd15', join(folder, 'sd15'));
      const [model, edges] = ['model', 'control'].map((name) => source(name, join(folder, 'sd15', name)));
      const image = { width: 64, height: 64, data: new Uint8Array(64 * 64 * 3) };
      const control = [{ controlNet: edges, image, scale: 1, start: 0, end: 1 }];
      expect(await failAll([{ model, request: { ...request, control } }])).toEqual(['model texts', 'model', 'control']);
    });

    it('though each of two makes room for the other', async () => {
      const others = ['one', 'two'].map((name) => ({ model: source(name, plainFolder), request }));
      expect((await failAll(others)).length).toBeLessThanOrEqual(2 * 6);
    });
  });

  it('says that another process may have its room, also when its thread ends or has not begun', async () => {
    const idle = engineOf(threadFile);
    await idle.reserve(2 ** 20);
    await draw({}, {}, idle);
    await idle.reserve(2 ** 50);
    expect(idle.loadedKeys.size).toBe(0);
    const closing = idle.close();
    await Promise.all([idle.reserve(2 ** 20), closing]);
  });

  it('learns how many rows a call may have once', async () => {
    const run = Reflect.get<ModelSession, 'run'>(ModelSession.prototype, 'run');
    let failures = 0;
    jest.spyOn(ModelSession.prototype, 'run').mockImplementation(async function (this: ModelSession, feeds) {
      if (feeds.sample === undefined || feeds.sample.dims[0] <= 2) return run.call(this, feeds);
      failures++;
      throw new OutOfMemoryError('out of memory');
    });
    const said: string[] = [];
    const loop = loopOf(({ type }) => said.push(type));
    for (const numInferenceSteps of [5, 6, 7]) {
      const values = { ...request, numImages: 3, numInferenceSteps };
      const ends = said.length;
      loop.add(taskOf(1, { request: values }));
      await until(async () => said.slice(ends).some((type) => /^(done|failed)$/.test(type)), 'it is drawn');
    }
    await loop.close();
    jest.restoreAllMocks();
    expect(said).not.toContain('failed');
    expect(failures).toBe(1);
  });

  it('fails a picture that is too large by itself only after it was tried with nothing beside it', async () => {
    const small = engineOf(faultyThread('smallMemory'));
    const order: string[] = [];
    let neighbour: Promise<unknown> | undefined;
    await new Promise<unknown>((onStarted) => {
      neighbour = draw({ numInferenceSteps: 40 }, { onStarted }, small).then(() => order.push('the neighbour'));
    });
    const tooLarge = draw({ width: 192 }, { owner: 'another' }, small).finally(() => order.push('the large one'));
    await expect(tooLarge).rejects.toThrow(EngineBrokenError);
    await neighbour;
    expect(order).toEqual(['the neighbour', 'the large one']);
    await small.close();
  });

  it('decodes a picture with nothing beside it for which there was no memory, and fails what is too large alone', async () => {
    const small = engineOf(faultyThread('smallDecoder'));
    // An owner who loads a model has had so much of the device.
    await draw({}, { owner: 'third' }, small);
    const beside = draw({ numInferenceSteps: 30 }, {}, small);
    const [picture] = await draw({ width: 128 }, { owner: 'another' }, small);
    await expect(draw({ width: 192 }, {}, small)).rejects.toThrow(EngineBrokenError);
    await small.close();
    expect(picture).toEqual((await draw({ width: 128 }))[0]);
    expect(await beside).toHaveLength(1);
  });

  it.each(['beside another', 'by itself'])(
    'draws a picture anew whose scheduler failed in the middle of a step, %s, and the same one',
    async (beside) => {
      const failing = engineOf(faultyThread('failingScheduler'));
      const values = { numInferenceSteps: 20, scheduler: 'dpmpp_2m' };
      const others = beside === 'by itself' ? [] : [draw({ numInferenceSteps: 20 }, {}, failing)];
      const [pictures, ...rest] = await Promise.all([draw(values, {}, failing), ...others]);
      expect(pictures).toEqual(await draw(values));
      for (const other of rest) expect(other).toEqual(await draw({ numInferenceSteps: 20 }));
      await failing.close();
    },
  );

  it('still draws afterwards', async () => {
    expect(await draw({})).toHaveLength(1);
  });
});

/** Printed by measure-memory.cjs. */
interface Measured {
  bytes: { row: number; decoding: number };
  calls: number[];
  decoded: number;
}

// Elsewhere the system does not tell what a process has touched.
(process.platform === 'linux' ? describe : describe.skip)('the estimated memory of the bundled model', () => {
  const script = join(__dirname, '..', 'support', 'measure-memory.cjs');
  const shapes = resolve(__dirname, '..', '..', 'models', 'shapes');
  const rows = [2, 4, 8, 16];
  /** Room for the growth of the process's heap; what sessions need beside their calls covers it. */
  const ofJavaScript = 8 * 2 ** 20;

  it.each([
    { width: 512, height: 512 },
    { width: 512, height: 768 },
  ])('covers what was measured at $width x $height, and not many times over', async ({ width, height }) => {
    const values = [script, shapes, ...[width, height, ...rows].map(String)];
    // Otherwise what loading has freed is kept by the C library, and used again without a trace.
    const env = { ...process.env, MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };
    const { stdout } = await promisify(execFile)(process.execPath, values, { env });
    const { bytes, calls, decoded } = JSON.parse(stdout) as Measured;
    for (const [index, count] of rows.entries()) expect(calls[index]).toBeLessThan(ofJavaScript + count * bytes.row);
    expect(rows.at(-1)! * bytes.row).toBeLessThan(6 * calls.at(-1)!);
    expect(decoded).toBeLessThan(bytes.decoding);
    expect(bytes.decoding).toBeLessThan(6 * decoded);
  });
});
