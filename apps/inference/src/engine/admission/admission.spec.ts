import { modelWidths, OutOfMemoryError, type Trajectory } from '@app/diffusion';
import { Admission } from './admission';
import type { DrawCommand, DrawingInProgress } from '../calls/drawing-in-progress';
import { EngineShares } from '../time/engine-shares';
import type { LoadedModel } from '../models/loaded-model';
import { ModelRegistry } from '../models/model-registry';
import { bytesPerRow, decodeBytes, encodeBytes } from '../memory/picture-memory';
import { wallClock } from '../time/work-clock';

const facts = { widths: modelWidths({ textEncoder: {}, unet: {}, vaeDecoder: {} }), scheduler: 'euler' };
const size = { width: 64, height: 64 };
const bytesOfDrawing = encodeBytes(facts, 2) + 2 * bytesPerRow(facts, size) + decodeBytes(facts, size);
const noWeights = { kind: 'lora', file: 'no file', hash: '', scale: 1, token: '' } as const;
const outOfMemory = (): Promise<Trajectory[]> => Promise.reject(new OutOfMemoryError('no memory'));

/** A model without graphs, whose texts are encoded at once. */
class FakeModel {
  pipeline = {
    facts,
    prepare: async (): Promise<Trajectory[]> => [],
    rowsOfTexts: ({ prompt }: { prompt: string }): number => prompt.split(' ').length,
  };

  async release(): Promise<void> {
    this.pipeline.prepare = () => Promise.reject(new Error('it is released'));
  }
}

describe(Admission.name, () => {
  let drawn: DrawingInProgress[];
  let failures: string[];
  let busy: number[];
  let released: string[];
  let shares: EngineShares;
  let registry: ModelRegistry;
  let admission: Admission;

  beforeEach(async () => {
    [drawn, failures, released, busy] = [[], [], [], []];
    shares = new EngineShares();
    const inUse = () => new Set([...drawn.map(({ command }) => command.model.key), admission.modelInUse ?? '']);
    registry = new ModelRegistry(
      3 * bytesOfDrawing,
      { inUse, awaited: () => new Set() },
      () => undefined,
      (key) => released.push(key),
    );
    // Nothing can be written there, and nothing is.
    const options = { device: 'cpu', intraOpNumThreads: 1, cacheDir: '/dev/null/none' } as const;
    admission = new Admission(options, registry, {
      isIdle: () => drawn.length === 0,
      isAnythingAlone: () => drawn.some(({ command }) => command.alone),
      drawingsLeft: () => [],
      drawingOwners: () => drawn.map(({ command }) => command.owner),
      begun: (drawing) => drawn.push(drawing),
      failed: ({ id }, error) => failures.push(`${id}: ${(error as Error).message}`),
      throwIfClosed: () => undefined,
      busy: ({ id }) => busy.push(id),
      ...{ shares, rowMs: () => 1 },
      encode: wallClock.during,
    });
  });

  async function load(key: string): Promise<FakeModel> {
    const load = async () => new FakeModel() as FakeModel & LoadedModel;
    return registry.get(key, async () => ({ bytes: 1, load }));
  }

  function add(id: number, key: string, { edge = size.width, prompt = 'a circle', weights = false } = {}): DrawCommand {
    const model = { key, name: key, folder: `no folder of ${key}`, hash: '', ...(weights && { weights: noWeights }) };
    const request = {
      ...{ prompt, negativePrompt: null, guidanceScale: 7.5, numInferenceSteps: 1, seed: id },
      ...{ numImages: 1, scheduler: null, width: edge, height: edge, promptWeighting: false },
    };
    const command = {
      type: 'draw',
      id,
      owner: `owner ${id}`,
      model,
      request,
      cancel: new SharedArrayBuffer(4),
    } as const;
    admission.add(command);
    return command;
  }

  const cancel = ({ cancel: flag }: DrawCommand): void => void Atomics.store(new Int32Array(flag), 0, 1);
  const drawnIds = (): number[] => drawn.map(({ command }) => command.id);

  it('begins what has room, in order, and charges each owner', async () => {
    await load('a');
    await load('b');
    add(1, 'a');
    add(2, 'b');
    await admission.admit();
    expect(drawnIds()).toEqual([1, 2]);
    for (const owner of ['owner 1', 'owner 2']) expect(shares.of(owner)).toBeGreaterThan(0);
    expect(admission.size).toBe(0);
  });

  it('lets what has no room wait until it has, and all that came after it', async () => {
    await load('a');
    await load('b');
    add(1, 'a');
    add(2, 'b', { edge: 4 * size.width });
    add(3, 'a');
    await admission.admit();
    expect(drawnIds()).toEqual([1]);
    drawn = [];
    await admission.admit();
    expect(drawnIds()).toEqual([2, 3]);
  });

  it('lets a prompt wait that has no room to be encoded, makes room for it, and counts it from then on', async () => {
    await load('a');
    await load('b');
    add(1, 'a');
    const rows = Math.ceil((3 * bytesOfDrawing) / encodeBytes(facts, 1));
    add(2, 'b', { prompt: Array(rows).fill('word').join(' ') });
    await admission.admit();
    expect([drawnIds(), released]).toEqual([[1], []]);
    const { bytes } = registry;
    drawn = [];
    await admission.admit();
    expect([drawnIds(), released]).toEqual([[2], ['a']]);
    expect(registry.bytes).toBe(1 + encodeBytes(facts, rows));
    expect(bytes).toBe(2 + encodeBytes(facts, 2));
  });

  it('begins what is drawn anew before all others, once nothing is drawn, and nothing beside it', async () => {
    await load('a');
    add(1, 'a');
    add(2, 'a');
    await admission.admit();
    add(3, 'a');
    admission.addAlone(drawn.pop()!);
    await admission.admit();
    expect(drawnIds()).toEqual([1]);
    drawn = [];
    await admission.admit();
    expect(drawn.map(({ command }) => [command.id, command.alone])).toEqual([[2, true]]);
    drawn = [];
    await admission.admit();
    expect(drawn.map(({ command }) => [command.id, command.alone])).toEqual([[3, undefined]]);
  });

  it('lets go of what is canceled while it waits, and not of what it is just beginning', async () => {
    const model = await load('a');
    let encoded!: () => void;
    const encoding = new Promise<Trajectory[]>((resolve) => (encoded = () => resolve([])));
    model.pipeline.prepare = () => encoding;
    const [first, second] = [add(1, 'a'), add(2, 'a')];
    const admitting = admission.admit();
    await new Promise(setImmediate);
    [first, second].forEach(cancel);
    admission.endAborted();
    expect(failures).toEqual(['2: The run was aborted.']);
    encoded();
    await admitting;
    expect(drawnIds()).toEqual([1]);
    expect(failures).toHaveLength(1);
  });

  it('tries again without idle models what had no memory', async () => {
    const model = await load('a');
    await load('idle');
    const { prepare } = model.pipeline;
    model.pipeline.prepare = () => (released.length === 0 ? outOfMemory() : prepare());
    add(1, 'a');
    await admission.admit();
    expect(released).toEqual(['idle']);
    expect(drawnIds()).toEqual([1]);
  });

  it('begins alone what had no memory beside others, and fails what has none alone', async () => {
    const model = await load('a');
    await load('b');
    add(1, 'b');
    await admission.admit();
    model.pipeline.prepare = outOfMemory;
    add(2, 'a');
    await admission.admit();
    expect([admission.size, failures]).toEqual([1, []]);
    drawn = [];
    await admission.admit();
    expect(failures).toEqual(['2: no memory']);
    expect([admission.size, released]).toEqual([0, ['b']]);
  });

  it('begins with a Fine-Tune that another has loaded meanwhile, without a turn at merging', async () => {
    for (const [id, key] of ['another', 'loaded', 'loaded'].entries()) add(id, key, { weights: true });
    await admission.admit();
    expect(drawnIds()).toEqual([]);
    // No file can have been read before this is loaded, because nothing is waited for.
    await load('loaded');
    await admission.admit();
    expect([drawnIds(), failures]).toEqual([[1, 2], []]);
    await admission.nextReady();
    await admission.admit();
    expect(failures).toEqual([expect.stringMatching(/^0: /)]);
    expect(busy).toEqual([0]);
  });

  it('lets nobody wait while it finds out what a model takes, and fails one whose folder is of no use', async () => {
    await load('a');
    add(1, 'unknown');
    add(2, 'a');
    await admission.admit();
    expect(drawnIds()).toEqual([2]);
    await admission.nextReady();
    await admission.admit();
    expect(failures).toEqual([expect.stringMatching(/^1: .*no folder of unknown/)]);
  });
});
