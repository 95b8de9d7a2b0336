import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cures } from '@app/diffusion/files';
import type { ModelStore } from '@app/model-store';
import { tryModel } from '../../apps/cli/src/model-report';
import { eachWithModelStore, familyIn } from '../support/model-store-site';

describe('ModelStore', () => {
  let folder: string;
  let store: ModelStore;
  const { left } = eachWithModelStore((site) => ({ folder, store } = site));
  const tryOut = async (at: string, signal: AbortSignal): Promise<void> => void (await tryModel(at, signal));
  const kind = 'safety';

  /** A model of Stable Diffusion with the safety checker that it was released with. */
  async function released(): Promise<string> {
    const model = join(await familyIn(folder, 'sd15'), 'model');
    await cp(join(await familyIn(folder, 'safety'), 'safety_checker'), join(model, 'safety_checker'), {
      recursive: true,
    });
    return model;
  }

  it('installs the safety checker of a model, and nothing else of it', async () => {
    const added = await store.add(await released(), { as: 'watch', kind, tryOut });
    expect(added).toMatchObject({ name: 'watch', kind, family: 'safety', nativeSize: 224 });
    expect(added.problem).toBeUndefined();
    expect(await store.list()).toMatchObject([{ name: 'watch', kind, hash: added.hash }]);
    expect(await store.verify('watch')).toMatchObject({ ok: true, hash: added.hash });
  });

  it('installs one that lies by itself, with the same hash', async () => {
    const alone = join(await familyIn(folder, 'safety'), 'safety_checker');
    const { hash } = await store.add(alone, { as: 'alone', kind });
    expect(await store.add(await released(), { as: 'watch', kind })).toMatchObject({ hash });
  });

  it('leaves the safety checker of a model out where the model is installed', async () => {
    const plain = await store.add(join(await familyIn(folder, 'sd15'), 'model'), { as: 'plain' });
    expect(await store.add(await released(), { as: 'sd1.5' })).toMatchObject({
      kind: 'text-to-image',
      hash: plain.hash,
    });
  });

  it('refuses one that was not asked for, and something else in its place', async () => {
    const model = join(await familyIn(folder, 'sd15'), 'model');
    await expect(store.add(model, { as: 'watch', kind })).rejects.toThrow(
      `it holds no safety_checker/config.json. ${cures.otherSafety}`,
    );
    await expect(store.add(await familyIn(folder, 'safety'), { as: 'watch' })).rejects.toThrow(cures.asSafety);
    const other = join(folder, 'other');
    await mkdir(other);
    await rename(join(model, 'text_encoder'), join(other, 'safety_checker'));
    await expect(store.add(other, { as: 'watch', kind })).rejects.toThrow('is no safety checker of Stable Diffusion');
    await rm(join(other, 'safety_checker/config.json'));
    await expect(store.add(other, { as: 'watch', kind })).rejects.toThrow(cures.otherSafety);
    expect(await left()).toEqual([]);
  });
});
