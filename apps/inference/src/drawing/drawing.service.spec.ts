import { once } from 'node:events';
import { type Tasks, type Served, type Settlement, StorageFullError } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { ImageStorage } from '@app/storage';
import type { DataSource } from 'typeorm';
import type { DrawOptions } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import { PictureStore } from '../pictures/picture-store';
import { DrawingLock } from './drawing-lock';
import { DrawingService, type DrawingSlot } from './drawing.service';
import { FailureService } from './failure.service';
import type { ModelResolver } from './model-resolver';
import { ProgressPublisher } from './progress-publisher';
import type { StopListener } from './stop-listener';
import { TaskRunner } from './task-runner';
import { until } from '../../../../test/support/until';
import { drawingTask } from '../../../../test/support/drawing-rows';

const gone = new Error('The database is gone.');
const servedBy = 'shapes@0123456789ab';

class FakeLifeCycle {
  readonly settled: Settlement[] = [];
  readonly released: unknown[] = [];
  /** Writes that fail before one succeeds. */
  failuresToCome = 0;
  readonly started: Served[] = [];
  onStarted: () => void = () => undefined;

  async recordServed(_task: unknown, served: Served): Promise<boolean> {
    if (this.failuresToCome-- > 0) throw gone;
    this.started.push(served);
    this.onStarted();
    return true;
  }

  assertStorable = async (): Promise<void> => undefined;

  isFull = false;

  async settle(_task: unknown, settlement: Settlement): Promise<boolean> {
    if (this.isFull && settlement.images) throw new StorageFullError('There is no room.');
    this.settled.push(settlement);
    return true;
  }

  async release(_task: unknown, why: unknown): Promise<boolean> {
    this.released.push(why);
    return true;
  }
}

class FakeStorage {
  write = async (): Promise<void> => undefined;
  removeAll = async (): Promise<void> => undefined;
}

describe(DrawingService.name, () => {
  const logger = new JsonLogger('test', 'silent');
  const model = { servedBy, adapters: [], source: { name: 'shapes', hash: '0123456789ab' } };
  const resolver = { resolve: async () => model, errorAfterRefusal: (error: Error) => error };
  const picture = { data: new Uint8Array(3 * 8 * 8), width: 8, height: 8 };
  let tasks: FakeLifeCycle;
  let storage: FakeStorage;

  beforeEach(() => {
    tasks = new FakeLifeCycle();
    storage = new FakeStorage();
  });

  /** Draws a task of two pictures on an engine that does as it is told. */
  async function run(
    draw: (drawing: DrawOptions) => Promise<void>,
    { filter, query }: { filter?: 'block' | 'report'; query?: (text: string, values: string[]) => Promise<void> } = {},
  ): Promise<void> {
    const life = tasks as unknown as Tasks;
    const stops = { on: () => () => undefined } as unknown as StopListener;
    const failures = new FailureService(life, logger, { isAtFault: async () => false });
    const drawings = new DrawingService(
      new TaskRunner(life, stops, failures, logger),
      life,
      { ...resolver, resolve: async () => ({ ...model, filter }) } as unknown as ModelResolver,
      new PictureStore(storage as unknown as ImageStorage, { sign: async (_task, _index, encoded) => encoded }),
      { isOn: false, flags: async () => undefined },
      new ProgressPublisher({ query } as unknown as DataSource, logger),
      { read: async () => ({ control: [], references: [] }) },
      logger,
    );
    const engine = {
      draw: async (drawing: DrawOptions) => {
        drawing.onStarted?.({ promptChunks: 2, scheduler: 'euler' });
        await draw(drawing);
        return { computeMs: 1_000 };
      },
    };
    const slot: DrawingSlot = { engineFor: () => engine, giveBack: () => undefined, lock: new DrawingLock() };
    const values = {
      id: 'task',
      attempt: 1,
      deaths: 0,
      failures: 0,
      seed: 1,
      numImages: 2,
      outputFormat: 'png',
    } as const;
    await drawings.run(drawingTask('owner', values), slot, new AbortController().signal);
  }
  const drawsBoth = async ({ onPicture }: DrawOptions): Promise<void> => {
    for (const index of [0, 1]) onPicture(index, picture, false);
  };

  it('shows no previews where flagged pictures are blocked, because nobody has looked at what is half drawn', async () => {
    const published: string[] = [];
    const query = async (_: string, [, payload]: string[]) => void published.push(payload);
    for (const filter of ['block', 'report'] as const)
      await run(
        async ({ onProgress, onPicture }) => {
          onProgress?.({ step: 30, total: 30, preview: picture });
          onPicture(0, picture, false);
        },
        { filter, query },
      );
    await until(async () => published.length === 2, 'both are published');
    const hasPreview = published.map((each) => 'preview' in (JSON.parse(each) as object));
    expect(hasPreview.sort()).toEqual([false, true]);
  });

  it('fails a task whose pictures its owner has no room for, at once, and charges what drawing it has used', async () => {
    tasks.isFull = true;
    await run(async ({ onPicture }) => onPicture(0, picture, false));
    expect(tasks.settled).toEqual([{ status: 'failed', error: 'There is no room.', computeSeconds: 1 }]);
  });

  it('keeps what it has drawn if the start could not be recorded, and records it at the end', async () => {
    tasks.failuresToCome = Infinity;
    await run(drawsBoth);
    expect(tasks.released).toEqual([]);
    const images = [expect.objectContaining({ index: 0 }), expect.objectContaining({ index: 1 })] as unknown;
    expect(tasks.settled).toEqual([
      expect.objectContaining({ status: 'succeeded', served: { servedBy, promptChunks: 2 }, images }),
    ]);
    tasks.failuresToCome = 0;
  });

  it('records the start while it draws, if need be at the second try', async () => {
    tasks.failuresToCome = 1;
    const recorded = new Promise<void>((resolve) => (tasks.onStarted = resolve));
    await run(async (drawing) => {
      await recorded;
      await drawsBoth(drawing);
    });
    expect(tasks.started).toEqual([{ servedBy, promptChunks: 2 }]);
    expect(tasks.settled).toMatchObject([{ status: 'succeeded' }]);
  });

  it('stops drawing at the first picture that cannot be stored, and tries again as after any error', async () => {
    storage.write = async () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    };
    let isStopped = false;
    await run(async ({ onPicture, signal }) => {
      onPicture(0, picture, false);
      await once(signal!, 'abort', { signal: AbortSignal.timeout(1_000) });
      isStopped = true;
      throw new TaskAbortedError('It is stopped.');
    });
    expect(isStopped).toBe(true);
    expect(tasks.released).toEqual([{ delayMs: 2_000, because: 'failed' }]);
  });
});
