import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { ModelSession, OutOfMemoryError } from '@app/diffusion';
import { OneAtATime } from '@app/process';
import { type DrawCommand, DrawingInProgress } from '../../apps/inference/src/engine/calls/drawing-in-progress';
import { EngineLoop } from '../../apps/inference/src/engine/loop/engine-loop';
import type { EngineMessage } from '../../apps/inference/src/engine/engine-protocol';
import { EngineShares } from '../../apps/inference/src/engine/time/engine-shares';
import { Enlarging } from '../../apps/inference/src/engine/upscaling/enlarging';
import { loadUpscaler } from '../../apps/inference/src/engine/upscaling/load-upscaler';
import type { LoadedModel } from '../../apps/inference/src/engine/models/loaded-model';
import { ModelRegistry } from '../../apps/inference/src/engine/models/model-registry';
import { tileBytes } from '../../apps/inference/src/engine/memory/picture-memory';
import type { TiledUpscaler } from '../../apps/inference/src/engine/upscaling/tiled-upscaler';
import { wallClock, type WorkClock } from '../../apps/inference/src/engine/time/work-clock';
import { smallRequest } from '../support/small-request';
import { until } from '../support/until';
import { encodeUpscaler } from '../support/upscaler-model';

type Upscaler = Pick<TiledUpscaler, 'enlarge' | 'release'>;

const edge = 200;
const tinyFolder = join(__dirname, '..', 'golden', 'models', 'tiny', 'sd15-diffusers');
const tinyRequest = { ...smallRequest, negativePrompt: null, guidanceScale: 1 };

describe(Enlarging.name, () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-enlarging-'));
  const file = join(folder, 'double.onnx');
  const source = { key: 'double', name: 'double.onnx', file, maxLongEdge: 2 * edge };

  beforeAll(() => writeFileSync(file, encodeUpscaler()));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Enlarging as the engine wires it; `told` has what it reports of pictures and ends. */
  function setUp({ upscaler, clock = wallClock }: { upscaler?: Upscaler; clock?: WorkClock } = {}) {
    const told: string[] = [];
    const report = (message: EngineMessage): void => {
      if (message.type === 'picture') told.push(`${message.id}: picture ${message.index}`);
      else if (message.type === 'failed') told.push(`${message.id}: ${message.failure}`);
      else if (message.type === 'done') told.push(`${message.id}: done`);
    };
    const shares = new EngineShares();
    const thread = new OneAtATime();
    const drawing: { owner: string }[] = [];
    const enlarging: Enlarging = new Enlarging(
      { device: 'cpu', intraOpNumThreads: 1, cacheDir: folder },
      {
        registry: upscaler ? registryOf(upscaler) : registry(() => new Set(enlarging.modelsInUse)),
        shares,
        thread,
        clocks: { others: clock },
        withWork: () => drawing,
        isDrawing: () => drawing.length > 0,
        report,
        left: (owner) => void (enlarging.owners.includes(owner) || shares.leave(owner)),
      },
    );
    const add = (id: number, owner: string, pictures: number): Int32Array => {
      const cancel = new SharedArrayBuffer(4);
      shares.enter(owner);
      enlarging.add(decodedDrawing({ id, owner, cancel } as DrawCommand, pictures), source);
      return new Int32Array(cancel);
    };
    const untilTold = (line: string) => until(async () => told.includes(line), `it tells "${line}"`);
    return { enlarging, told, add, untilTold, shares, drawing, thread };
  }

  it('gives up a canceled drawing that waits for another, at the next tile', async () => {
    const { enlarging, told, add, untilTold } = setUp();
    add(1, 'one', 2);
    const second = add(2, 'one', 1);
    Atomics.store(second, 0, 1);
    await untilTold('1: done');
    expect(told).toEqual(['2: aborted', '1: picture 0', '1: picture 1', '1: done']);
    await enlarging.close();
  });

  it('tells nothing more of a drawing that is given up during its last tile', async () => {
    const canceled = slowUpscaler(1, () => {
      Atomics.store(cancel, 0, 1);
      enlarging.endAborted();
    });
    const { enlarging, told, add, untilTold } = setUp({ upscaler: canceled });
    const cancel = add(1, 'one', 1);
    await untilTold('1: aborted');
    await enlarging.close();
    expect(told).toEqual(['1: aborted']);
  });

  it('counts what a tile takes on a GPU, which keeps it, and not on the processor, which frees it', async () => {
    const open = (path: string) => ModelSession.openFile(path, { executionProviders: ['cpu'] });
    const side = { openFile: open, open: ({ path }: { path: string }) => open(path) };
    const options = { intraOpNumThreads: 1, cacheDir: folder };
    const [plain, gpu] = [registry(() => new Set()), registry(() => new Set())];
    await loadUpscaler(plain, source, { ...options, device: 'cpu' });
    await loadUpscaler(gpu, source, { ...options, device: 'cuda:0', side });
    expect(gpu.bytes - plain.bytes).toBe(tileBytes({ width: 128, height: 128 }, 2));
    await Promise.all([plain.clear(), gpu.clear()]);
  });

  it('lets owners take turns, picture by picture', async () => {
    const { enlarging, told, add, untilTold } = setUp();
    add(1, 'one', 4);
    add(2, 'two', 1);
    await untilTold('1: done');
    expect(told.indexOf('2: done')).toBeLessThan(told.indexOf('1: picture 2'));
    await enlarging.close();
  });

  it('does as many tiles beside a short drawing as have its time, and one, however many pictures wait', async () => {
    let tiles = 0;
    // A tile takes ten times as long as a step, by the clock that charges for it.
    const clock: WorkClock = {
      during: (work, took) => work().finally(() => took({ ms: 100, passedMs: 100, blockedMs: 100, isShared: false })),
    };
    const { enlarging, add, shares, drawing, thread } = setUp({ upscaler: slowUpscaler(30, () => tiles++), clock });
    shares.enter('two');
    drawing.push({ owner: 'two' });
    for (let id = 1; id <= 20; id++) add(id, 'one', 1);
    for (let step = 0; step < 40; step++) {
      enlarging.wake();
      await thread.run(async () => shares.charge('two', 10));
      await setImmediate();
    }
    expect(tiles).toBeGreaterThanOrEqual(3);
    expect(tiles).toBeLessThanOrEqual(5);
    await enlarging.close();
  });

  it('waits while its owner is ahead of one who has something to draw, but not for good', async () => {
    const tiles = jest.fn(() => block(20));
    const { enlarging, add, untilTold, shares, drawing, thread } = setUp({ upscaler: slowUpscaler(30, tiles) });
    shares.enter('two');
    drawing.push({ owner: 'two' });
    add(1, 'one', 1);
    shares.charge('one', 1e6);
    for (let turn = 0; turn < 60; turn++) {
      enlarging.wake();
      await thread.run(async () => block(5));
      await setImmediate();
    }
    // Without a wait there would be one after each piece, and with equal shares 15.
    expect(tiles.mock.calls.length).toBeGreaterThan(2);
    expect(tiles.mock.calls.length).toBeLessThan(15);
    shares.charge('two', 2e6);
    enlarging.wake();
    await untilTold('1: done');
    await enlarging.close();
  });

  it('tries with nothing beside it what ran out of memory beside others', async () => {
    let tries = 0;
    const { enlarging, told, add, untilTold, drawing } = setUp({
      upscaler: {
        ...slowUpscaler(1, () => undefined),
        async enlarge(picture) {
          tries++;
          if (drawing.length > 0) throw new OutOfMemoryError('out of memory');
          return picture;
        },
      },
    });
    drawing.push({ owner: 'two' });
    add(1, 'one', 1);
    await until(async () => enlarging.wantsToBeAlone, 'it waits for the others');
    for (let turn = 0; turn < 5; turn++) {
      enlarging.wake();
      await setImmediate();
    }
    expect(tries).toBe(1);
    expect(told).toEqual([]);
    drawing.length = 0;
    enlarging.wake();
    await untilTold('1: done');
    await enlarging.close();
  });

  it('does no two tiles between two steps of what is drawn beside it', async () => {
    const told: string[] = [];
    const report = (message: EngineMessage): void =>
      void told.push('id' in message ? `${message.id}: ${message.type}` : message.type);
    const options = { device: 'cpu', intraOpNumThreads: 1, cacheDir: folder } as const;
    const loop = new EngineLoop(options, 2 ** 30, report, () => undefined);
    const untilSaid = (line: string) => until(async () => told.includes(line), `it tells "${line}"`);
    const command = (id: number, change: Partial<DrawCommand['request']>): DrawCommand => ({
      type: 'draw',
      id,
      owner: `owner ${id}`,
      model: { key: 'tiny', name: 'tiny', folder: tinyFolder, hash: 'a'.repeat(64) },
      request: { ...tinyRequest, ...change },
      cancel: new SharedArrayBuffer(4),
    });
    loop.add({ ...command(1, { numInferenceSteps: 1, numImages: 2 }), upscaler: { ...source, maxLongEdge: 2048 } });
    await untilSaid('1: busy');
    loop.add(command(2, { numInferenceSteps: 30 }));
    await untilSaid('2: done');
    await loop.close();
    const beside = told.slice(told.indexOf('stepped', told.indexOf('2: started')), told.indexOf('2: done')).join(' ');
    expect(beside).toContain('1: busy');
    expect(beside).not.toContain('1: busy 1: busy');
  });

  it('gives up everything when the engine ends', async () => {
    const { enlarging, told, add } = setUp();
    add(1, 'one', 4);
    add(2, 'two', 1);
    await enlarging.close();
    expect(told).toEqual(['1: aborted', '2: aborted']);
    expect(enlarging.modelsInUse).toEqual([]);
  });
});

function registry(inUse: () => Set<string>): ModelRegistry {
  return new ModelRegistry(
    2 ** 30,
    { inUse, awaited: () => new Set() },
    () => undefined,
    () => undefined,
  );
}

/** A registry that has loaded this upscaler. */
function registryOf(upscaler: Upscaler): ModelRegistry {
  const loaded = registry(() => new Set());
  jest.spyOn(loaded, 'get').mockResolvedValue(upscaler);
  return loaded;
}

/** Takes so many tiles for each picture. */
function slowUpscaler(tiles: number, work: () => void): Upscaler {
  return {
    async enlarge(picture, _, perTile) {
      for (let tile = 0; tile < tiles; tile++) await perTile(async () => work());
      return picture;
    },
    release: async () => undefined,
  };
}

/** Takes so long, as a call of the runtime does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** A drawing whose pictures are gray. */
function decodedDrawing(command: DrawCommand, pictures: number): DrawingInProgress {
  const trajectories = Array.from({ length: pictures }, () => ({}) as DrawingInProgress['trajectories'][number]);
  const drawing = new DrawingInProgress(command, {} as LoadedModel, trajectories);
  const image = { width: edge, height: edge, data: new Uint8Array(edge * edge * 3).fill(128) };
  for (const trajectory of trajectories) drawing.took(trajectory, image);
  return drawing;
}
