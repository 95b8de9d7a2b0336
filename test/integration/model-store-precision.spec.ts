import type { ModelProgress, ModelStore } from '@app/model-store';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { cures, precisionOf, readSafetensors } from '@app/diffusion/files';
import type { HubServer } from '../support/hub-server';
import { eachWithModelStore, familyIn, hubModel, hubWeights } from '../support/model-store-site';

const converted = 'unet/diffusion_pytorch_model.safetensors';

describe('ModelStore', () => {
  let folder: string;
  let hub: HubServer;
  let store: ModelStore;
  const { storeWith, inModels, left, wantedHash } = eachWithModelStore((site) => ({ folder, hub, store } = site));

  describe('add in another precision', () => {
    it('keeps the weights of a repository in int8 and nothing else, and says so', async () => {
      const phases = new Set<string>();
      const onProgress = ({ phase }: ModelProgress): unknown => phases.add(phase);
      const model = await store.add(hub.repository, { as: 'small', precision: 'int8', onProgress });
      expect(model).toMatchObject({ precision: 'int8', isLinked: false, cannot: { training: /int8/ } });
      expect(model.cannot!.training).toMatch(/Install it in float32 or bfloat16/);
      expect(phases).toEqual(new Set(['download', 'convert', 'check']));
      expect(await left()).toEqual(['.small.darkroom-model.json', 'small']);
      for (const path of [converted, 'text_encoder/model.safetensors', 'text_encoder_2/model.safetensors'])
        expect(precisionOf(await readSafetensors(inModels('small', path)))).toBe('int8');
      await expect(stat(inModels('small', hubWeights))).rejects.toThrow('ENOENT');
      expect(await store.verify('small')).toMatchObject({ ok: true, recorded: true, hash: model.hash });
      expect(model.hash).not.toBe(await wantedHash());
      // The same files wherever it comes from.
      expect((await store.add(hubModel, { as: 'other', precision: 'int8' })).hash).toBe(model.hash);
    });

    it.each([
      ['sdxl', `model/${hubWeights}`, 'float16'],
      ['sd15', 'model/unet/diffusion_pytorch_model-00001-of-00003.safetensors', 'float32'],
      ['sdxl-file', 'model.safetensors', 'float16'],
    ])('leaves the files of a source as they are: %s', async (name, weights, stored) => {
      const family = await familyIn(folder, name);
      const file = join(family, weights);
      const path = name.endsWith('-file') ? file : join(family, 'model');
      const before = await readFile(file);
      const plain = await store.add(path, { as: 'plain', precision: 'float32' });
      const usual = await store.add(path, { as: 'usual' });
      const small = await store.add(path, { as: 'small', precision: 'int8' });
      expect([plain.precision, usual.hash, small.precision]).toEqual([stored, plain.hash, 'int8']);
      expect(small.bytes).toBeLessThan(plain.bytes);
      expect((await readFile(file)).equals(before)).toBe(true);
      // A model in int8 stays one.
      expect((await store.add(small.folder, { as: 'again', precision: 'int8' })).hash).toBe(small.hash);
      await expect(store.add(small.folder, { as: 'more', precision: 'bfloat16' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: expect.stringContaining(cures.plainWeights) as string,
      });
      await store.remove('small');
      expect((await left()).filter((one) => one.includes('small'))).toEqual([]);
    });

    it('goes on where it was broken off, and downloads nothing a second time', async () => {
      const stop = new AbortController();
      const onProgress = ({ phase, doneBytes }: ModelProgress): void => {
        if (phase === 'convert' && doneBytes > 0) stop.abort();
      };
      const options = { as: 'small', precision: 'int8' } as const;
      await expect(store.add(hub.repository, { ...options, onProgress, signal: stop.signal })).rejects.toMatchObject({
        code: 'Aborted',
      });
      expect(await store.list()).toEqual([]);
      expect(await left()).toEqual(['.small.converted', '.small.part']);
      const asked = hub.requests.length;
      const model = await storeWith().add(hub.repository, options);
      expect(hub.requests.slice(asked).filter(({ file }) => file?.endsWith('.safetensors'))).toEqual([]);
      expect(await left()).toEqual(['.small.darkroom-model.json', 'small']);
      expect(model.hash).toBe((await store.add(hubModel, { as: 'other', precision: 'int8' })).hash);
    });

    it('refuses it for a ControlNet', async () => {
      await expect(store.add(hubModel, { as: 'small', kind: 'control', precision: 'int8' })).rejects.toMatchObject({
        code: 'InvalidDefaults',
      });
    });
  });
});
