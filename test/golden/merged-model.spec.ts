import { existsSync, statSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { WeightsError } from '@app/diffusion';
import { pruneMerged } from '../../apps/inference/src/engine/models/merge-pruning';
import { mergedModel } from '../../apps/inference/src/engine/models/merged-model';
import { makeFolderBesideModels } from '../support/folder-beside-models';
import { encodeSafetensors } from '../support/safetensors';

const shapes = join(__dirname, '../../models/shapes');
const tiny = join(__dirname, 'models/tiny/sd15-fp16');
const robot = join(__dirname, 'models/lora/zwx-robot-diffusers.safetensors');
const layer = 'unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q';

let folder: string;
let cacheDir: string;
let lora: string;
beforeEach(async () => {
  folder = await makeFolderBesideModels('merged');
  cacheDir = join(folder, 'cache');
  lora = join(folder, 'lora.safetensors');
  const values = Array.from({ length: 32 }, (_, i) => Math.sin(i));
  const [down, up] = [
    [1, 32],
    [32, 1],
  ].map((shape) => ({ shape, values }));
  await writeFile(lora, encodeSafetensors({ [`${layer}.lora_A.weight`]: down, [`${layer}.lora_B.weight`]: up }));
});
afterEach(() => rm(folder, { recursive: true }));

/** Merges a LoRA at a scale; by default the small LoRA into the small base. */
const merge = (changes: { base?: string; baseHash?: string; file?: string; hash?: string; scale?: number } = {}) => {
  const { base = tiny, baseHash = 'base', file = lora, hash = 'lora', scale = 1 } = changes;
  const weights = { kind: 'lora' as const, file, hash, scale, token: 'zwx' };
  return mergedModel({ folder: base, hash: baseHash, weights }, cacheDir);
};

describe(mergedModel.name, () => {
  it('is the model itself where there are no weights', async () => {
    await expect(mergedModel({ folder: tiny, hash: 'base' }, cacheDir)).resolves.toBe(tiny);
  });

  it('caches the merge, and merges once if two ask at once', async () => {
    const [one, other] = await Promise.all([merge(), merge()]);
    const { mtimeMs, ino } = await stat(join(one, 'unet/model.onnx'));
    const later = await merge();
    expect(other).toBe(one);
    expect(later).toBe(one);
    expect(await stat(join(later, 'unet/model.onnx'))).toMatchObject({ mtimeMs, ino });
  });

  it('distinguishes scales, bases and LoRAs', async () => {
    const folders = [
      await merge(),
      await merge({ scale: 0.5 }),
      await merge({ baseHash: 'another' }),
      await merge({ hash: 'another' }),
    ];
    expect(new Set(folders).size).toBe(4);
  });

  it('leaves nothing of a failed merge', async () => {
    await expect(merge({ file: robot })).rejects.toThrow(WeightsError);
    expect(await readdir(cacheDir)).toEqual([]);
  });

  it('removes the rest of a merge whose process died, but not what another is writing', async () => {
    const [dead, alive] = [join(cacheDir, '.tmp-dead'), join(cacheDir, '.tmp-alive')];
    for (const path of [dead, alive]) await mkdir(join(path, 'unet'), { recursive: true });
    await utimes(dead, 0, 0);
    const merged = await merge();
    expect((await readdir(cacheDir)).sort()).toEqual(['.tmp-alive', basename(merged)]);
  });

  const otherDevice = '/dev/shm';
  const hasOtherDevice = existsSync(otherDevice) && statSync(otherDevice).dev !== statSync(__dirname).dev;
  (hasOtherDevice ? it : it.skip)('copies a base on another device once for all merges', async () => {
    const away = await mkdtemp(join(otherDevice, 'darkroom-base-'));
    try {
      await cp(tiny, away, { recursive: true });
      const [one, other] = [await merge({ base: away }), await merge({ base: away, scale: 0.5 })];
      for (const file of ['unet/base.weights', 'vae_decoder/model.onnx']) {
        const [first, second] = [await stat(join(one, file)), await stat(join(other, file))];
        expect(first.dev).not.toBe((await stat(away)).dev);
        expect(second.ino).toBe(first.ino);
      }
    } finally {
      await rm(away, { recursive: true });
    }
  });
});

describe(pruneMerged.name, () => {
  it('deletes the least recently used merges when it is too large, but none that is in use', async () => {
    // A large base, so that changed weights are most of a merge's own size.
    const merges = [0.1, 0.2, 0.3].map((scale) => merge({ base: shapes, file: robot, scale }));
    const [oldest, newest, inUse] = await Promise.all(merges);
    const anHour = 3600;
    const usedBefore = async (merged: string, seconds: number) => {
      const then = Date.now() / 1000 - seconds;
      await utimes(join(merged, 'merge.json'), then, then);
    };
    await usedBefore(oldest, 2 * anHour);
    await usedBefore(newest, anHour);
    const left = async () => (await readdir(cacheDir)).filter((name) => name.startsWith('lora-')).sort();
    const names = (...folders: string[]) => folders.map((merged) => basename(merged)).sort();

    const { size } = await stat(join(inUse, 'unet/changed.weights'));
    await pruneMerged(cacheDir, 10 * size);
    expect(await left()).toEqual(names(oldest, newest, inUse));
    await pruneMerged(cacheDir, 2.5 * size);
    expect(await left()).toEqual(names(newest, inUse));
    await pruneMerged(cacheDir, 0);
    expect(await left()).toEqual(names(inUse));
  });
});
