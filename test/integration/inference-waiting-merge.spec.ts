import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Admission } from '../../apps/inference/src/engine/admission/admission';
import type { DrawCommand, DrawingInProgress } from '../../apps/inference/src/engine/calls/drawing-in-progress';
import type { DrawnModel } from '../../apps/inference/src/engine/engine-protocol';
import { EngineShares } from '../../apps/inference/src/engine/time/engine-shares';
import { mergesIn } from '../../apps/inference/src/engine/models/merge-cache';
import { ModelRegistry } from '../../apps/inference/src/engine/models/model-registry';
import { wallClock } from '../../apps/inference/src/engine/time/work-clock';

const root = join(__dirname, '..', '..');
const request: DrawCommand['request'] = {
  prompt: 'zwx robot',
  negativePrompt: null,
  guidanceScale: 1,
  numInferenceSteps: 1,
  seed: 1,
  numImages: 1,
  scheduler: null,
  width: 256,
  height: 256,
  promptWeighting: false,
};

/** Counts what it charges for. */
class CountingShares extends EngineShares {
  works = 0;

  override chargeFor<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.works++;
    return super.chargeFor(owner, work);
  }
}

describe(Admission.name, () => {
  let cacheDir: string;
  let registry: ModelRegistry;
  let admission: Admission;
  let shares: CountingShares;
  let [begun, failed]: number[][] = [];
  /** What happens whenever a merge asks whether it is still wanted, which it does at each of a hundred layers. */
  let atLayer: (command: DrawCommand) => void;

  beforeEach(() => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-merges-'));
    [begun, failed] = [[], []];
    shares = new CountingShares();
    atLayer = () => undefined;
    const host = {
      isIdle: () => true,
      isAnythingAlone: () => false,
      drawingsLeft: () => [],
      drawingOwners: () => [],
      begun: ({ command }: DrawingInProgress) => void begun.push(command.id),
      failed: ({ id }: DrawCommand) => void failed.push(id),
      throwIfClosed: () => undefined,
      busy: (command: DrawCommand) => atLayer(command),
      ...{ shares, rowMs: () => 0 },
      encode: wallClock.during,
    };
    const nothing = () => undefined;
    registry = new ModelRegistry(Infinity, { inUse: () => new Set(), awaited: () => new Set() }, nothing, nothing);
    admission = new Admission({ device: 'cpu', intraOpNumThreads: 1, cacheDir }, registry, host);
  });

  afterEach(async () => {
    await registry.clear();
    rmSync(cacheDir, { recursive: true });
  });

  it('lets a command go that is canceled while it waits for the merge of another', async () => {
    const commands = [commandOf(1), commandOf(2)];
    // A merge of seconds.
    atLayer = () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
      cancel(commands[1]);
    };
    for (const command of commands) admission.add(command);
    await admission.admit();
    await admission.nextReady();
    admission.endAborted();
    await admission.admit();
    expect([failed, begun]).toEqual([[2], []]);
    cancel(commands[0]);
    await admission.nextReady();
    admission.endAborted();
    expect(failed).toEqual([2, 1]);
  });

  it('merges a Fine-Tune once for all that wait for it, also when the first of them is canceled', async () => {
    const commands = [commandOf(1), commandOf(2, 1), commandOf(3, 1)];
    const layersOf = new Map<number, number>();
    atLayer = ({ id }) => {
      layersOf.set(id, (layersOf.get(id) ?? 0) + 1);
      cancel(commands[0]);
    };
    for (const command of commands) admission.add(command);
    while (admission.size > 0) {
      await admission.admit();
      admission.endAborted();
      await admission.nextReady();
    }
    expect([failed, begun]).toEqual([[1], [2, 3]]);
    expect([layersOf.get(1), layersOf.get(3)]).toEqual([1, undefined]);
    // Merging and loading, each once.
    expect(shares.works).toBe(2);
  });

  it('merges anew what was deleted to make room, without holding up what is loaded', async () => {
    admission.add(commandOf(1));
    await admission.admit();
    await admission.nextReady();
    rmSync(mergesIn(cacheDir), { recursive: true });
    await admission.admit();
    expect([admission.size, begun]).toEqual([1, []]);
    await admission.nextReady();
    await admission.admit();
    expect([admission.size, failed, begun]).toEqual([0, [], [1]]);
  });
});

function commandOf(id: number, finetune = id): DrawCommand {
  const model: DrawnModel = {
    key: `robot ${finetune}`,
    name: 'shapes',
    folder: join(root, 'models', 'shapes'),
    hash: 'a'.repeat(64),
    weights: {
      kind: 'lora',
      file: join(root, 'test/golden/models/lora/zwx-robot-diffusers.safetensors'),
      hash: 'b'.repeat(64),
      scale: 1 / finetune,
      token: 'zwx',
    },
  };
  return { type: 'draw', id, owner: 'somebody', model, request, cancel: new SharedArrayBuffer(4) };
}

function cancel(command: DrawCommand): void {
  Atomics.store(new Int32Array(command.cancel), 0, 1);
}
