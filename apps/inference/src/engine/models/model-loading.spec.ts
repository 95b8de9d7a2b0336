import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelFolderError } from '@app/diffusion';
import { cachedMerge, MergeGoneError, mergesIn } from './merge-cache';
import { describePipeline } from './model-loading';

const tiny = join(__dirname, '../../../../../test/golden/models/tiny/sd15-fp16');

describe(describePipeline.name, () => {
  let cacheDir: string;
  beforeEach(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), 'darkroom-loading-'));
  });
  afterEach(() => rm(cacheDir, { recursive: true }));

  it('loads a merge, and tells one that is broken from one that was deleted meanwhile', async () => {
    const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;
    const merge = await cachedMerge(mergesIn(cacheDir), key, async (own) => {
      await cp(tiny, own, { recursive: true });
      return 1;
    });
    const weights = { kind: 'lora', file: 'no file', hash: 'weights', scale: 1, token: '' } as const;
    const model = { key: 'tuned', name: 'tuned', folder: 'no folder', hash: 'base', weights };
    const { load } = await describePipeline(model, { device: 'cpu', intraOpNumThreads: 1, cacheDir });
    await rm(join(merge, 'unet'), { recursive: true });
    await expect(load()).rejects.toThrow(ModelFolderError);
    await rm(merge, { recursive: true });
    await expect(load()).rejects.toThrow(MergeGoneError);
  });
});
