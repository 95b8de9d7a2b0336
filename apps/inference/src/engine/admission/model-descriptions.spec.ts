import { rmSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedMerge, MergeGoneError, mergesIn } from '../models/merge-cache';
import { EngineShares } from '../time/engine-shares';
import { ModelDescriptions } from './model-descriptions';

describe(ModelDescriptions.name, () => {
  let cacheDir: string;
  beforeEach(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), 'darkroom-descriptions-'));
  });
  afterEach(() => rm(cacheDir, { recursive: true }));

  it('forgets one whose merge was deleted before it was read, so that it is merged anew', async () => {
    const weights = { kind: 'lora', file: 'no file', hash: 'weights', scale: 1, token: '' } as const;
    const model = { key: 'tuned', name: 'tuned', folder: 'no folder', hash: 'base', weights };
    const request = {
      ...{ prompt: '', negativePrompt: null, guidanceScale: 1, numInferenceSteps: 1, seed: 1, numImages: 1 },
      ...{ scheduler: null, width: 64, height: 64, promptWeighting: false },
    };
    const command = { type: 'draw', id: 1, owner: '', model, request, cancel: new SharedArrayBuffer(4) } as const;
    const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;
    const merge = await cachedMerge(mergesIn(cacheDir), key, async () => 1);
    // A file in place of this folder ends the pruning between finding a merge and reading it, with a note.
    await writeFile(join(mergesIn(cacheDir), 'bases'), '');
    const note = (): void => rmSync(merge, { recursive: true });
    const descriptions = new ModelDescriptions(
      { device: 'cpu', intraOpNumThreads: 1, cacheDir, mergedCacheBytes: 0, note },
      { shares: new EngineShares(), throwIfClosed: () => undefined, busy: () => undefined },
      () => [command],
    );
    await expect(descriptions.of(command)).rejects.toThrow(MergeGoneError);
    expect(descriptions.known(command)).toBeUndefined();
    await expect(descriptions.of(command)).rejects.toThrow('no f');
    expect(descriptions.known(command)).toMatchObject({ isOver: true });
  });
});
