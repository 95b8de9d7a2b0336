import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { StableDiffusionPipeline } from '@app/diffusion';
import { Admission } from '../../apps/inference/src/engine/admission/admission';
import { CallTimes } from '../../apps/inference/src/engine/time/call-times';
import {
  type DrawCommand,
  DrawingInProgress,
  pipelineRequest,
} from '../../apps/inference/src/engine/calls/drawing-in-progress';
import { EngineShares } from '../../apps/inference/src/engine/time/engine-shares';
import { LoadedModel } from '../../apps/inference/src/engine/models/loaded-model';
import { ModelRegistry } from '../../apps/inference/src/engine/models/model-registry';
import { Pieces } from '../../apps/inference/src/engine/calls/pieces';
import { RowLimits } from '../../apps/inference/src/engine/calls/row-limits';
import type { WorkClock } from '../../apps/inference/src/engine/time/work-clock';
import { smallRequest } from '../support/small-request';
import { placeModel } from '../support/tiny-models';

const root = join(__dirname, '..', '..');
const tiny = join(root, 'test/golden/models/tiny/sd15-diffusers');
const robot = join(root, 'test/golden/models/lora/zwx-robot-diffusers.safetensors');
/** A LoRA of the model `lcm`. */
const lcm = join(root, 'test/golden/models/lora/lcm-kohya.safetensors');
const nothing = (): void => undefined;

/** By which each piece of work has 10 ms of the device, however long it waits for others. */
const clock: WorkClock = {
  during: (work, took) => work().finally(() => took({ ms: 10, passedMs: 1_000, blockedMs: 0, isShared: true })),
};

describe('what is charged for', () => {
  let cacheDir: string;
  let shares: EngineShares;
  let registry: ModelRegistry;
  let now: number;
  beforeEach(() => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-shares-'));
    // Reading, merging and loading take 10 ms each: the clock is read when they begin and when they end.
    now = 0;
    shares = new EngineShares(() => (now += 10));
    registry = new ModelRegistry(Infinity, { inUse: () => new Set(), awaited: () => new Set() }, nothing, nothing);
    // Whoever draws all the time keeps what the others have had in mind.
    shares.enter('steady');
  });
  afterEach(async () => {
    await registry.clear();
    rmSync(cacheDir, { recursive: true });
  });

  const commandOf = (id: number, owner: string, change: Partial<DrawCommand['model']> = {}): DrawCommand => ({
    ...{ type: 'draw', id, owner, cancel: new SharedArrayBuffer(4), request: smallRequest },
    model: { key: `${id}`, name: 'tiny', folder: tiny, hash: 'a'.repeat(64), ...change },
  });
  const lora = { kind: 'lora', file: robot, hash: 'b'.repeat(64), scale: 1, token: 'zwx' } as const;

  function admissionOf() {
    const ended: string[] = [];
    const admission = new Admission({ device: 'cpu', intraOpNumThreads: 1, cacheDir }, registry, {
      ...{ shares, rowMs: () => 0, encode: clock.during },
      isIdle: () => true,
      isAnythingAlone: () => false,
      drawingsLeft: () => [],
      drawingOwners: () => [],
      begun: ({ command }) => void ended.push(`${command.id} begun`),
      failed: ({ id }) => void ended.push(`${id} failed`),
      throwIfClosed: nothing,
      busy: nothing,
    });
    const settle = async (): Promise<void> => {
      while (admission.size > 0) {
        await admission.admit();
        await admission.nextReady();
      }
    };
    return { admission, ended, settle };
  }

  it('reading, loading and encoding, by what they take and not by how long they wait', async () => {
    const { admission, ended, settle } = admissionOf();
    admission.add(commandOf(1, 'one'));
    await settle();
    expect([ended, shares.of('one')]).toEqual([['1 begun'], 30]);
  });

  it('a model that cannot be loaded, so that others go before the next one of its owner', async () => {
    const { admission, ended, settle } = admissionOf();
    admission.add(commandOf(4, 'other'));
    await settle();
    const folder = join(cacheDir, 'odd');
    cpSync(tiny, folder, { recursive: true });
    const graph = join(folder, 'unet/model.onnx');
    writeFileSync(graph, readFileSync(graph, 'latin1').replaceAll('Sigmoid', 'Sigmoyd'), 'latin1');
    for (let id = 1; id <= 3; id++) admission.add(commandOf(id, 'failing', { folder }));
    const reading = jest.spyOn(shares, 'chargeFor');
    await admission.admit();
    await Promise.all(reading.mock.results.map(({ value }) => value as Promise<unknown>));
    expect(reading).toHaveBeenCalledTimes(3);
    // Whichever was read last, by then admission knows of it.
    await setImmediate();
    // Both owners have had as much so far.
    const most = Math.max(shares.of('failing'), shares.of('other'));
    for (const owner of ['failing', 'other']) shares.charge(owner, most - shares.of(owner));
    admission.add({ ...commandOf(4, 'other'), id: 5 });
    await settle();
    expect(ended).toEqual(['4 begun', '1 failed', '5 begun', '2 failed', '3 failed']);
    expect(shares.of('failing')).toBeCloseTo(most + 30);
  });

  it('a merge that fails, because it does not fit or its files are no weights', async () => {
    const { admission, ended, settle } = admissionOf();
    admission.add(commandOf(1, 'unfit', { weights: lora }));
    admission.add(commandOf(2, 'unreadable', { weights: { ...lora, file: join(tiny, 'model_index.json') } }));
    await settle();
    expect(ended.sort()).toEqual(['1 failed', '2 failed']);
    expect([shares.of('unfit'), shares.of('unreadable')]).toEqual([10, 10]);
  });

  it('each merge and load of a Fine-Tune whose scale is changed again and again, and owners merge in turns', async () => {
    const { admission, ended, settle } = admissionOf();
    const folder = join(cacheDir, 'lcm');
    await placeModel('lcm', folder);
    const fitting = { ...lora, file: lcm };
    for (let id = 1; id <= 3; id++)
      admission.add(commandOf(id, 'changing', { folder, weights: { ...fitting, scale: 1 / id } }));
    admission.add(commandOf(4, 'other', { folder, weights: { ...fitting, scale: 0.1 } }));
    await settle();
    // More than the loading and the encoding: a merge, and its folder read again when it is loaded.
    expect(shares.of('changing')).toBeGreaterThan(3 * 20);
    expect(ended.indexOf('4 begun')).toBeLessThan(3);
  });

  it('calls and decodings that fail, or that are given up meanwhile', async () => {
    const model = new LoadedModel(await StableDiffusionPipeline.load(tiny, { device: 'cpu', intraOpNumThreads: 1 }), 0);
    await registry.get('1', async () => ({ bytes: 1, load: async () => ({ release: async () => undefined }) }));
    const begin = async (owner: string): Promise<DrawingInProgress> => {
      const command = { ...commandOf(1, owner), request: { ...smallRequest, numInferenceSteps: 1 } };
      return new DrawingInProgress(command, model, await model.pipeline.prepare(pipelineRequest(command.request)));
    };
    let drawings: DrawingInProgress[] = [];
    let onDecoding = nothing;
    const others: WorkClock = {
      during: (work, took) => {
        onDecoding();
        return clock.during(work, took);
      },
    };
    const callTimes = new CallTimes();
    const pieces = new Pieces({
      ...{
        registry,
        callTimes,
        shares,
        clocks: { unet: clock, others },
        report: nothing,
        drawings: () => drawings,
      },
      rowLimits: new RowLimits('cpu', { callBytes: () => Infinity, isCheaperPerRow: () => false }),
      isEnlarging: () => false,
      hasSecondThread: false,
      end: (ended) => void (drawings = drawings.filter((drawing) => drawing !== ended)),
      drawAlone: nothing,
      decoded: nothing,
    });
    const step = (...drawn: DrawingInProgress[]) =>
      pieces.step(drawn.map((candidate) => ({ candidate, pictures: candidate.pictures })));

    const [givenUp, failing, other] = [await begin('giving up'), await begin('failing'), await begin('other')];
    drawings = [givenUp];
    await step(givenUp);
    onDecoding = () => void (drawings = []);
    await pieces.decode(givenUp, givenUp.trajectories[0]);
    onDecoding = nothing;
    expect([shares.of('giving up'), givenUp.computeMs]).toEqual([20, 10]);

    const decoding = await begin('failing');
    drawings = [decoding];
    await step(decoding);
    // From now on every call fails.
    await model.pipeline.release();
    await pieces.decode(decoding, decoding.trajectories[0]);
    expect(shares.of('failing')).toBe(20);
    drawings = [failing, other];
    await step(failing, other);
    expect([shares.of('failing'), shares.of('other')]).toEqual([25, 5]);
    await step(failing);
    expect([shares.of('failing'), drawings]).toEqual([35, [other]]);
    expect([failing.computeMs, other.computeMs]).toEqual([0, 0]);
  });
});
