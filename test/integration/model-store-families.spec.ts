import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readModelParts } from '@app/diffusion/files';
import type { ModelStore } from '@app/model-store';
import { usualPrecision } from '../../libs/model-store/src/convert-model';
import { unpackTransformerModel } from '../support/families';
import { HubServer } from '../support/hub-server';
import { eachWithModelStore, familyIn } from '../support/model-store-site';

describe('ModelStore', () => {
  let folder: string;
  let store: ModelStore;
  const { storeWith, inModels, left } = eachWithModelStore((site) => ({ folder, store } = site));

  async function unpacked(name: string): Promise<string> {
    await unpackTransformerModel(name, join(folder, name));
    return join(folder, name);
  }
  const vaeOf = (path: string): string => join(path, 'vae', 'diffusion_pytorch_model.safetensors');

  describe('add a model with a transformer', () => {
    it.each([
      ['flux2-klein', { scheduler: 'ddim' }, /^What was given has the scheduler ddim, .* flow matching\.$/],
      ['flux2-klein', { cfg: 4 }, /^What was given has a cfg of 4, and the model was distilled /],
      ['z-image', { clip_skip: 2 }, /^What was given has a clip_skip, .* is no CLIP\.$/],
      ['z-image', { prediction_type: 'epsilon' }, /^What was given has a prediction_type, .* flow matching /],
    ] as const)('refuses values for another kind of model: %s, %j', async (name, defaults, message) => {
      const source = await unpacked(name);
      await expect(store.add(source, { as: 'x', defaults })).rejects.toMatchObject({
        code: 'InvalidDefaults',
        message: expect.stringMatching(message) as string,
      });
      expect(await left().catch(() => [])).toEqual([]);
      // By hand they make it a broken one.
      await unpackTransformerModel(name, inModels('hand'));
      await writeFile(inModels('hand', 'darkroom.json'), JSON.stringify(defaults));
      const { problem, hash } = (await store.find('hand'))!;
      expect([problem, hash]).toEqual([expect.stringMatching(/^darkroom\.json has (a|the) /), undefined]);
    });

    it('takes values that fit', async () => {
      const defaults = { scheduler: 'heun', cfg: 1, steps: 6, size: 256 } as const;
      expect(await store.add(await unpacked('flux2-klein'), { as: 'x', defaults })).toMatchObject({ defaults });
      const base = await store.add(await unpacked('flux2-klein-base'), { as: 'base', defaults: { cfg: 6 } });
      expect(base.defaults).toMatchObject({ cfg: 6, steps: 50 });
    });

    it('refuses an autoencoder of another family before anything is placed', async () => {
      const [klein, zImage] = [await unpacked('flux2-klein'), await unpacked('z-image')];
      const sd = join(await familyIn(folder, 'sd15'), 'model');
      for (const [source, vae, words] of [
        [klein, zImage, /no autoencoder of FLUX\.2 \[klein\]: its latents have \d+ channels, and \d+ are needed/],
        [zImage, klein, /no autoencoder of Z-Image: /],
        [sd, zImage, /no autoencoder of Stable Diffusion 1\.x: /],
      ] as const) {
        const added = store.add(source, { as: 'x', vae: vaeOf(vae), precision: 'float32' });
        await expect(added).rejects.toMatchObject({
          code: 'InvalidModel',
          message: expect.stringMatching(words) as string,
        });
        expect(await left()).toEqual([]);
      }
      expect((await store.add(klein, { as: 'x', vae: vaeOf(klein) })).family).toBe('flux2');
    });

    it('keeps what it has downloaded where only the options are wrong', async () => {
      const hub = await HubServer.start();
      hub.publishFolder(await unpacked('flux2-klein'));
      const downloading = storeWith({ endpoint: hub.url });
      await expect(downloading.add(hub.repository, { as: 'x', defaults: { cfg: 4 } })).rejects.toMatchObject({
        code: 'InvalidDefaults',
      });
      const weights = () => hub.requests.filter(({ file }) => file.endsWith('.safetensors')).length;
      const before = weights();
      await downloading.add(hub.repository, { as: 'x' });
      expect([before > 0, weights()]).toEqual([true, before]);
      await hub.close();
    });

    it('keeps a transformer of more than a billion weights in int8 by default, and no smaller one', async () => {
      const source = await unpacked('flux2-klein');
      expect(usualPrecision(await readModelParts(source))).toBe('float32');
      const file = join(source, 'transformer', 'diffusion_pytorch_model.safetensors');
      const weights = await readFile(file);
      const end = 8 + Number(weights.readBigUInt64LE());
      const header = JSON.parse(weights.subarray(8, end).toString()) as Record<string, object>;
      const length = weights.length - end;
      const bytes = 2 * 40_000 * 30_000;
      header['proj_out.bias'] = { dtype: 'BF16', shape: [bytes / 2], data_offsets: [length, length + bytes] };
      const text = Buffer.from(JSON.stringify(header));
      const count = Buffer.alloc(8);
      count.writeBigUInt64LE(BigInt(text.length));
      // A hole of the file system takes no room.
      const handle = await open(file, 'w');
      await handle.writeFile(Buffer.concat([count, text, weights.subarray(end)]));
      await handle.truncate(8 + text.length + length + bytes);
      await handle.close();
      expect(usualPrecision(await readModelParts(source))).toBe('int8');
    });
  });
});
