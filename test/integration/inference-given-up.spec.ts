import { join } from 'node:path';
import { OutOfMemoryError, StableDiffusionPipeline } from '@app/diffusion';
import { CallTimes } from '../../apps/inference/src/engine/time/call-times';
import { DrawingInProgress, pipelineRequest } from '../../apps/inference/src/engine/calls/drawing-in-progress';
import { EngineShares } from '../../apps/inference/src/engine/time/engine-shares';
import { LoadedModel } from '../../apps/inference/src/engine/models/loaded-model';
import type { Releasable } from '../../apps/inference/src/engine/models/model-registry';
import { ModelRegistry } from '../../apps/inference/src/engine/models/model-registry';
import { Pieces } from '../../apps/inference/src/engine/calls/pieces';
import { RowLimits } from '../../apps/inference/src/engine/calls/row-limits';
import type { WorkClocks } from '../../apps/inference/src/engine/time/work-clock';
import { wallClock } from '../../apps/inference/src/engine/time/work-clock';
import { smallRequest } from '../support/small-request';

const tiny = join(__dirname, '..', 'golden/models/tiny/sd15-diffusers');
const nothing = (): void => undefined;

describe('a call for drawings that are given up', () => {
  let drawings: DrawingInProgress[];
  let registry: ModelRegistry;
  let model: LoadedModel;
  let shares: EngineShares;
  let rowLimits: RowLimits;
  let calls: number;
  /** What happens while a call is made. */
  let onCall: () => void;
  let pieces: Pieces;

  beforeEach(async () => {
    [drawings, calls, onCall] = [[], 0, nothing];
    const inUse = () => new Set(drawings.map(({ command }) => command.model.key));
    registry = new ModelRegistry(1, { inUse, awaited: () => new Set() }, nothing, nothing);
    shares = new EngineShares();
    rowLimits = new RowLimits('cpu', { callBytes: () => Infinity, isCheaperPerRow: () => false });
    const unet: WorkClocks['unet'] = {
      during: (work, took) => {
        calls++;
        onCall();
        return wallClock.during(work, took);
      },
    };
    pieces = new Pieces({
      ...{ registry, rowLimits, shares, report: nothing, clocks: { unet, others: wallClock } },
      callTimes: new CallTimes(),
      drawings: () => drawings,
      isEnlarging: () => false,
      hasSecondThread: false,
      end: (ended) => void (drawings = drawings.filter((drawing) => drawing !== ended)),
      drawAlone: nothing,
      decoded: nothing,
    });
    const load = async () =>
      new LoadedModel(await StableDiffusionPipeline.load(tiny, { device: 'cpu', intraOpNumThreads: 1 }));
    model = await registry.get('tiny', async () => ({ bytes: 1, load }));
    // The owner of all that is given up keeps what it had in mind.
    shares.enter('steady');
  });
  afterEach(() => registry.clear());

  async function begin(id: number): Promise<DrawingInProgress> {
    const drawn = { key: 'tiny', name: 'tiny', folder: tiny, hash: 'a'.repeat(64) };
    const cancel = new SharedArrayBuffer(4);
    const command = { type: 'draw', id, owner: `${id}`, model: drawn, request: smallRequest, cancel } as const;
    const drawing = new DrawingInProgress(command, model, await model.pipeline.prepare(pipelineRequest(smallRequest)));
    drawings.push(drawing);
    return drawing;
  }

  const step = (...drawn: readonly DrawingInProgress[]): Promise<void> =>
    pieces.step(drawn.map((candidate) => ({ candidate, pictures: candidate.pictures })));
  const most = (drawing: DrawingInProgress): number => rowLimits.of(drawing.kind, drawing);

  /** A step that waits for room until another model is loaded. @returns ends the loading */
  async function waitingStep(...drawn: readonly DrawingInProgress[]) {
    let finish: (other: Releasable) => void = nothing;
    let begins: () => void = nothing;
    const begun = new Promise<void>((resolve) => (begins = resolve));
    const load = () => new Promise<Releasable>((resolve) => [(finish = resolve), begins()]);
    const loaded = registry.get('other', async () => ({ bytes: 1, load }));
    await begun;
    const stepped = step(...drawn);
    return async (): Promise<void> => {
      finish({ release: async () => undefined });
      await loaded;
      await stepped;
    };
  }

  it('is not made if all are given up while it waits for room, and leaves the limit of rows as it is', async () => {
    const [one, two] = [await begin(1), await begin(2)];
    const before = most(one);
    const load = await waitingStep(one, two);
    drawings = [];
    // Nobody draws with it, so making room releases the model itself.
    await load();
    expect([calls, most(one), one.underWay.size]).toEqual([0, before, 0]);
  });

  it('is made for those that are left', async () => {
    const [one, two] = [await begin(1), await begin(2)];
    const load = await waitingStep(one, two);
    drawings = [two];
    await load();
    expect([calls, one.progress.step, two.progress.step]).toEqual([1, 0, 1]);
    expect(shares.of('1')).toBe(0);
    expect(shares.of('2')).toBeGreaterThan(0);
  });

  it('teaches nothing about rows if it fails when nobody wants it any more', async () => {
    const [one, two] = [await begin(1), await begin(2)];
    const before = most(one);
    const failing = (): never => {
      throw new OutOfMemoryError('no memory');
    };
    onCall = () => [(drawings = []), failing()];
    await step(one, two);
    expect(most(one)).toBe(before);
    drawings = [one, two];
    onCall = failing;
    await step(one, two);
    expect(most(one)).toBeLessThan(before);
  });
});
