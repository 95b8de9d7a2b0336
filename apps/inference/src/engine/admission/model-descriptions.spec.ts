import { rmSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedMerge, MergeGoneError, mergesIn } from '../models/merge-cache';
import { EngineShares } from '../time/engine-shares';
import { ModelDescriptions, NotDescribedError } from './model-descriptions';

const tiny = join(__dirname, '../../../../../test/golden/models/tiny/sd15-fp16');

describe(ModelDescriptions.name, () => {
  let cacheDir: string;
  beforeEach(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), 'darkroom-descriptions-'));
  });
  afterEach(() => rm(cacheDir, { recursive: true }));

  /** Finds out what takes a Fine-Tune that is merged, and may be deleted before it is read. */
  async function describing() {
    const weights = { kind: 'lora', file: 'no file', hash: 'weights', scale: 1, token: '' } as const;
    const model = { key: 'tuned', name: 'tuned', folder: 'no folder', hash: 'base', weights };
    const request = {
      ...{ prompt: '', negativePrompt: null, guidanceScale: 1, numInferenceSteps: 1, seed: 1, numImages: 1 },
      ...{ scheduler: null, width: 64, height: 64, promptWeighting: false },
    };
    const command = { type: 'draw', id: 1, owner: '', model, request, cancel: new SharedArrayBuffer(4) } as const;
    const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;
    const merge = () =>
      cachedMerge(mergesIn(cacheDir), key, async (own) => (await cp(tiny, own, { recursive: true }), 1));
    const folder = await merge();
    // A file in place of this folder ends the pruning between finding a merge and reading it, with a note.
    await writeFile(join(mergesIn(cacheDir), 'bases'), '');
    const remove = (): void => rmSync(folder, { recursive: true });
    const host = { shares: new EngineShares(), throwIfClosed: () => undefined, busy: () => undefined };
    const options = { device: 'cpu', intraOpNumThreads: 1, cacheDir, mergedCacheBytes: 0 } as const;
    const merged = { onRead: remove };
    const note = (): void => merged.onRead();
    const waiting = [command];
    const descriptions = new ModelDescriptions({ ...options, note }, host, () => waiting);
    return { command, descriptions, merge, merged, remove, waiting };
  }

  it('forgets one whose merge was deleted before it was read, so that it is merged anew', async () => {
    const { command, descriptions } = await describing();
    await expect(descriptions.of(command)).rejects.toThrow(NotDescribedError);
    expect(descriptions.known(command)).toBeUndefined();
    await expect(descriptions.of(command)).rejects.toThrow('no f');
    expect(descriptions.known(command)).toMatchObject({ isOver: true });
  });

  it('breaks the drawings that wait for one that is deleted five times before it is loaded', async () => {
    const { command, descriptions, merge, merged, remove, waiting } = await describing();
    await expect(descriptions.of(command)).rejects.toThrow(NotDescribedError);
    merged.onRead = () => undefined;
    for (const deleteAndUse of [
      async () => (remove(), descriptions.kept(command)),
      async () => {
        const { load } = await descriptions.kept(command);
        remove();
        return load();
      },
    ]) {
      await merge();
      await descriptions.of(command);
      await expect(deleteAndUse()).rejects.toThrow(NotDescribedError);
      expect(descriptions.known(command)).toBeUndefined();
    }
    merged.onRead = remove;
    await merge();
    await expect(descriptions.of(command)).rejects.toThrow(NotDescribedError);
    await merge();
    await expect(descriptions.of(command)).rejects.toThrow('The merged model was deleted 5 times');
    await expect(descriptions.kept(command)).rejects.toThrow(MergeGoneError);
    waiting.length = 0;
    descriptions.forgetUnwanted();
    waiting.push(command);
    await merge();
    await expect(descriptions.of(command)).rejects.toThrow(NotDescribedError);
  });
});
