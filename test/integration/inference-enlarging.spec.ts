import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DrawCommand } from '../../apps/inference/src/engine/drawing-in-progress';
import { DrawingInProgress } from '../../apps/inference/src/engine/drawing-in-progress';
import type { EngineMessage } from '../../apps/inference/src/engine/engine-protocol';
import { EngineShares } from '../../apps/inference/src/engine/engine-shares';
import { Enlarging } from '../../apps/inference/src/engine/enlarging';
import type { LoadedModel } from '../../apps/inference/src/engine/loaded-model';
import { ModelRegistry } from '../../apps/inference/src/engine/model-registry';
import { OneAtATime } from '../../apps/inference/src/engine/one-at-a-time';
import { until } from '../support/until';
import { encodeUpscaler } from '../support/upscaler-model';

const edge = 200;

describe(Enlarging.name, () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-enlarging-'));
  const file = join(folder, 'double.onnx');
  const source = { key: 'double', name: 'double.onnx', file, maxLongEdge: 2 * edge };

  beforeAll(() => writeFileSync(file, encodeUpscaler()));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Enlarging as the engine wires it; `told` has what it reports of pictures and ends. */
  function setUp() {
    const told: string[] = [];
    const report = (message: EngineMessage): void => {
      if (message.type === 'picture') told.push(`${message.id}: picture ${message.index}`);
      else if (message.type === 'failed') told.push(`${message.id}: ${message.failure}`);
      else if (message.type === 'done') told.push(`${message.id}: done`);
    };
    const shares = new EngineShares();
    const enlarging: Enlarging = new Enlarging(
      { device: 'cpu', intraOpNumThreads: 1, cacheDir: folder },
      {
        registry: new ModelRegistry(
          2 ** 30,
          () => new Set(enlarging.modelsInUse),
          () => undefined,
          () => undefined,
        ),
        shares,
        device: new OneAtATime(),
        report,
        left: (owner) => void (enlarging.has(owner) || shares.leave(owner)),
      },
    );
    const add = (id: number, owner: string, pictures: number): Int32Array => {
      const cancel = new SharedArrayBuffer(4);
      shares.enter(owner);
      enlarging.add(decodedDrawing({ id, owner, cancel } as DrawCommand, pictures), source);
      return new Int32Array(cancel);
    };
    const untilTold = (line: string) => until(async () => told.includes(line), `it tells "${line}"`);
    return { enlarging, told, add, untilTold };
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

  it('lets owners take turns, picture by picture', async () => {
    const { enlarging, told, add, untilTold } = setUp();
    add(1, 'one', 4);
    add(2, 'two', 1);
    await untilTold('1: done');
    expect(told.indexOf('2: done')).toBeLessThan(told.indexOf('1: picture 2'));
    await enlarging.close();
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

/** A drawing whose pictures are gray. */
function decodedDrawing(command: DrawCommand, pictures: number): DrawingInProgress {
  const trajectories = Array.from({ length: pictures }, () => ({}) as DrawingInProgress['trajectories'][number]);
  const drawing = new DrawingInProgress(command, {} as LoadedModel, trajectories);
  const image = { width: edge, height: edge, data: new Uint8Array(edge * edge * 3).fill(128) };
  for (const trajectory of trajectories) drawing.took(trajectory, image);
  return drawing;
}
