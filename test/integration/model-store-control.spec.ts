import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { cures } from '@app/diffusion/files';
import { ModelStore } from '@app/model-store';
import { tryModel } from '../../apps/cli/src/model-report';
import { eachWithModelStore, familyIn } from '../support/model-store-site';
import { HubServer } from '../support/hub-server';

describe('ModelStore', () => {
  let folder: string;
  let store: ModelStore;
  const { left } = eachWithModelStore((site) => ({ folder, store } = site));
  const tryOut = async (at: string, signal: AbortSignal): Promise<void> => void (await tryModel(at, signal));
  const kind = 'control';
  const isOne = 'is a ControlNet, which guides a model and draws nothing by itself.';

  /** A store, and a repository on its hub with a ControlNet alone. */
  async function withRepository(use: (hub: HubServer, store: ModelStore) => Promise<void>): Promise<void> {
    const hub = await HubServer.start('someone/canny');
    try {
      hub.publishFolder(join(folder, 'sd15', 'control'));
      await use(hub, new ModelStore(join(folder, 'models'), { endpoint: hub.url }));
    } finally {
      await hub.close();
    }
  }

  it.each([
    ['sd15', 'control', 'sd1'],
    ['sdxl', 'control', 'sdxl'],
    ['sd15-file', 'control.safetensors', 'sd1'],
  ])('installs a ControlNet of %s, from %s, and knows the family that it fits', async (name, source, family) => {
    const at = join(await familyIn(folder, name), source);
    const added = await store.add(at, { as: 'edges', kind, tryOut });
    expect(added).toMatchObject({ name: 'edges', kind: 'control', family, source: at });
    expect(added.problem).toBeUndefined();
    expect(await store.list()).toMatchObject([{ name: 'edges', kind: 'control', family, hash: added.hash }]);
    expect(await store.verify('edges')).toMatchObject({ ok: true, hash: added.hash });
  });

  it('installs a ControlNet of a repository, of all its files the smallest weights', async () => {
    const control = join(await familyIn(folder, 'sd15'), 'control');
    await cp(
      join(control, 'diffusion_pytorch_model.safetensors'),
      join(control, 'diffusion_pytorch_model.fp16.safetensors'),
    );
    await withRepository(async ({ repository }, own) => {
      const added = await own.add(repository, { as: 'edges', kind, tryOut });
      expect(added).toMatchObject({ kind: 'control', family: 'sd1' });
      expect(await own.verify('edges')).toMatchObject({ ok: true });
    });
  });

  it.each([
    ['a folder', 'control', 'diffusion_pytorch_model.safetensors'],
    ['a file', 'control.safetensors', 'control.safetensors'],
  ])('says that it is a ControlNet where that was not asked for: %s', async (_, source, named) => {
    const at = join(await familyIn(folder, source.includes('.') ? 'sd15-file' : 'sd15'), source);
    const adding = store.add(at, { as: 'edges' });
    await expect(adding).rejects.toThrow(`${named} ${isOne} ${cures.asControl}`);
    expect(await left()).toEqual([]);
  });

  it('says so of a repository before its weights are downloaded', async () => {
    await familyIn(folder, 'sd15');
    await withRepository(async ({ repository, requests }, own) => {
      const adding = own.add(repository, { as: 'edges' });
      await expect(adding).rejects.toThrow(`config.json ${isOne} ${cures.asControl}`);
      expect(requests.filter(({ file }) => file.endsWith('.safetensors'))).toEqual([]);
    });
  });

  it('refuses a model in place of a ControlNet, and what only models have', async () => {
    const model = join(await familyIn(folder, 'sd15'), 'model');
    await expect(store.add(model, { as: 'edges', kind })).rejects.toThrow(
      `is of a model to draw with, and no ControlNet. ${cures.asModel}`,
    );
    const control = join(folder, 'sd15/control');
    const adding = store.add(control, { as: 'edges', kind, defaults: { steps: 4 } });
    await expect(adding).rejects.toMatchObject({ code: 'InvalidDefaults' });
    expect(await left()).toEqual([]);
  });

  it('lists a ControlNet that was put there by hand', async () => {
    await mkdir(join(folder, 'models'));
    await cp(join(await familyIn(folder, 'sdxl'), 'control'), join(folder, 'models', 'pose'), { recursive: true });
    expect(await store.list()).toMatchObject([{ name: 'pose', kind: 'control', family: 'sdxl' }]);
  });
});
