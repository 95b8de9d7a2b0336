import { appendFile, cp, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SharedSessions } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { Lanes } from '../../apps/inference/src/engine/threads/lanes';
import { describePipeline, type LoadingOptions } from '../../apps/inference/src/engine/models/model-loading';
import type { DrawnModel } from '../../apps/inference/src/engine/engine-protocol';
import { ModelRegistry } from '../../apps/inference/src/engine/models/model-registry';
import { placeModel } from '../support/tiny-models';
import { until } from '../support/until';

const golden = join(__dirname, '..', 'golden', 'models');
/** A small model that a LoRA fits. */
const small: DrawnModel = {
  key: 'small',
  name: 'small',
  folder: join(mkdtempSync(join(tmpdir(), 'darkroom-small-')), 'model'),
  hash: 'a'.repeat(64),
};
const tunedSmall: DrawnModel = {
  ...small,
  key: 'tuned',
  weights: {
    kind: 'lora',
    file: join(golden, 'lora', 'lcm-kohya.safetensors'),
    hash: 'b'.repeat(64),
    scale: 1,
    token: 'zwx',
  },
};

/** Lanes that have no memory for another model. */
class FullLanes extends Lanes {
  attempts = 0;

  override open(): ReturnType<Lanes['open']> {
    this.attempts++;
    return Promise.reject(new Error('There is no memory.'));
  }
}

describe(describePipeline, () => {
  let cacheDir: string;
  let registry: ModelRegistry;

  beforeAll(() => placeModel('lcm', small.folder));
  afterAll(() => rm(dirname(small.folder), { recursive: true }));

  beforeEach(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), 'darkroom-loading-'));
    registry = new ModelRegistry(
      Infinity,
      { inUse: () => new Set(), awaited: () => new Set() },
      () => undefined,
      () => undefined,
    );
  });
  afterEach(async () => {
    await registry.clear();
    await rm(cacheDir, { recursive: true });
  });

  const options = (): LoadingOptions => ({ device: 'cpu', intraOpNumThreads: 1, cacheDir });
  const load = (source: DrawnModel, rest: Partial<LoadingOptions> = {}) =>
    registry.get(source.key, () => describePipeline(source, { ...options(), ...rest }));
  const copiedModel = async () => {
    const folder = join(cacheDir, 'model');
    await cp(small.folder, folder, { recursive: true });
    return folder;
  };
  const merges = async () => (await readdir(join(cacheDir, 'finetunes'))).filter((name) => name !== 'bases');
  /** A merge of one kilobyte that was last used an hour ago. */
  const leaveOldMerge = async (name: string) => {
    const folder = join(cacheDir, 'finetunes', name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'changed.weights'), Buffer.alloc(1024));
    await writeFile(join(folder, 'merge.json'), '{"merged":1}');
    const anHourAgo = Date.now() / 1000 - 3600;
    await utimes(join(folder, 'merge.json'), anHourAgo, anHourAgo);
  };

  it('says that merged models cannot be deleted, and goes on', async () => {
    await mkdir(join(cacheDir, 'finetunes'));
    await writeFile(join(cacheDir, 'finetunes', 'bases'), 'no folder');
    const notes: string[] = [];
    const model = await load(
      { ...tunedSmall, folder: await copiedModel() },
      { mergedCacheBytes: 1, note: (sentence) => notes.push(sentence) },
    );
    expect(model.pipeline.facts.scheduler).toBeTruthy();
    expect(notes).toEqual(['Merged models that need too much room on the disk cannot be deleted: ENOTDIR.']);
  });

  it('says why a model is not drawn in lanes, and draws it without', async () => {
    const notes: string[] = [];
    const lanes = new FullLanes(2, Infinity, () => undefined);
    const model = await load(small, { lanes, note: (sentence) => notes.push(sentence) });
    model.noteDrawn(60_000);
    for (let i = 0; i < 2; i++) model.openLanes();
    await until(async () => notes.length > 0, 'it is said');
    expect(notes).toEqual(['small is drawn with one picture at a time: There is no memory.']);
    expect(model.inLanes).toBeUndefined();
  });

  it('loads no model into the lanes that was drawn with for less time than it took to load', async () => {
    const lanes = new FullLanes(2, Infinity, () => undefined);
    const model = await load(small, { lanes });
    model.noteDrawn(1);
    model.openLanes();
    expect(lanes.attempts).toBe(0);
    model.noteDrawn(60_000);
    model.openLanes();
    expect(lanes.attempts).toBe(1);
  });

  describe('with the model on the device of the cache, where files are linked', () => {
    let base: DrawnModel;
    let tuned: DrawnModel;
    const graphs = async () => (await readdir(join(cacheDir, 'graphs'))).sort();

    beforeEach(async () => {
      const folder = await copiedModel();
      [base, tuned] = [small, tunedSmall].map((source) => ({ ...source, folder }));
    });

    it('keeps an optimised graph of each part, and those of parts that a merge has changed in its folder', async () => {
      await load(base);
      const ofBase = await graphs();
      expect(ofBase).toHaveLength(3);
      await load(tuned);
      expect(await graphs()).toEqual(ofBase);
      const [merge] = await merges();
      expect(await readdir(join(cacheDir, 'finetunes', merge, 'unet', 'optimized'))).toHaveLength(1);
    });

    it('loads a part once that a model and its Fine-Tune have in common, and keeps it while one of them is loaded', async () => {
      const create = jest.spyOn(InferenceSession, 'create');
      const sharedSessions = new SharedSessions();
      const basePipeline = await load(base, { sharedSessions });
      const tunedPipeline = await load(tuned, { sharedSessions });
      const opened = create.mock.calls.map(([file]) => String(file)).filter((file) => file.includes('vae_decoder'));
      expect(opened).toHaveLength(1);
      const sizes = await Promise.all([base, tuned].map((model) => describePipeline(model, options())));
      const inCommon = (['textEncoder', 'vaeDecoder'] as const).map((part) => sizes[0].parts![part]!);
      expect([sizes[1].parts!.textEncoder, sizes[1].parts!.vaeDecoder]).toEqual(inCommon);
      const bytesInCommon = inCommon.reduce((sum, { bytes }) => sum + bytes, 0);
      expect(registry.bytes).toBe(sizes[0].bytes + sizes[1].bytes - bytesInCommon);
      await basePipeline.release();
      const request = {
        prompt: 'zwx robot',
        width: 64,
        height: 64,
        numInferenceSteps: 1,
        guidanceScale: 1,
        seeds: [1],
      };
      expect((await tunedPipeline.pipeline.generate(request)).images).toHaveLength(1);
      create.mockRestore();
    });

    it('deletes optimised graphs whose model has changed or is gone', async () => {
      await load(base);
      const before = await graphs();
      await rm(join(cacheDir, 'graphs', before[0], 'origin.json'));
      await registry.clear();
      await utimes(join(cacheDir, 'model', 'vae_decoder', 'model.onnx'), 0, 0);
      await load(base);
      const after = await graphs();
      expect(after).toHaveLength(3);
      expect(after.filter((name) => before.includes(name)).length).toBeLessThan(3);
    });
  });

  it('estimates whole bytes of memory, also where the files together have an odd number of them', async () => {
    const folder = join(cacheDir, 'odd');
    await cp(join(golden, 'tiny', 'sd15-diffusers'), folder, { recursive: true });
    const estimate = async () =>
      (await describePipeline({ ...small, folder }, { device: 'cpu', intraOpNumThreads: 1, cacheDir })).bytes;
    const before = await estimate();
    await appendFile(join(folder, 'unet/weights.pb'), 'x');
    const after = await estimate();
    expect([before, after].map(Number.isInteger)).toEqual([true, true]);
    expect(after).toBeGreaterThan(before);
  });

  it('deletes old merges for a new one when disk space is short', async () => {
    await leaveOldMerge('lora-old-1');
    await load(tunedSmall, { mergedCacheBytes: 1024 });
    expect(await merges()).toEqual([expect.stringMatching(/^lora-(?!old)/)]);
  });

  it.each([undefined, 10 ** 9])('keeps them with room for %s bytes', async (mergedCacheBytes) => {
    await leaveOldMerge('lora-old-1');
    await load(tunedSmall, { mergedCacheBytes });
    expect(await merges()).toContain('lora-old-1');
    expect(await merges()).toHaveLength(2);
  });
});
