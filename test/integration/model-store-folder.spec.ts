import { cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cures } from '@app/diffusion/files';
import { ModelStore } from '@app/model-store';
import { ModelCatalog } from '../../libs/model-store/src/model-catalog';
import { makePipe } from '../support/make-pipe';
import { eachWithModelStore, familyIn, hubModel, hubWeights } from '../support/model-store-site';

describe('ModelStore', () => {
  let folder: string;
  let store: ModelStore;
  const { inModels, left, wantedHash } = eachWithModelStore((site) => ({ folder, store } = site));
  const inode = async (path: string): Promise<number> => (await stat(path)).ino;

  describe('add from a folder', () => {
    it.each([
      ['sd15', { family: 'sd1', kind: 'text-to-image', nativeSize: 512 }],
      ['sd21', { family: 'sd2', kind: 'text-to-image', nativeSize: 768 }],
      ['sdxl-turbo', { family: 'sdxl', kind: 'text-to-image', nativeSize: 1024 }],
      ['lcm', { family: 'sd1', kind: 'text-to-image', scheduler: 'LCMScheduler' }],
      ['inpainting', { family: 'sd1', kind: 'inpainting' }],
      ['instruct-pix2pix', { family: 'sd1', kind: 'instruct-pix2pix' }],
    ])('installs %s', async (name, facts) => {
      const source = join(await familyIn(folder, name), 'model');
      const model = await store.add(source, { as: name });
      expect(model).toMatchObject({ name, source, isLinked: true, ...facts });
      expect(model.problem).toBeUndefined();
      await expect(store.add(source, { as: name })).rejects.toMatchObject({ code: 'ModelExists' });
    });

    it('links the weights and copies what people edit', async () => {
      await store.add(hubModel, { as: 'x' });
      const same = async (path: string) => (await inode(inModels('x', path))) === (await inode(join(hubModel, path)));
      expect([await same(hubWeights), await same('unet/config.json')]).toEqual([true, false]);
    });

    it('takes the weights that would be read, and nothing else', async () => {
      const source = join(folder, 'both');
      await cp(hubModel, source, { recursive: true });
      await cp(join(source, hubWeights), join(source, 'unet/diffusion_pytorch_model.safetensors'));
      await mkdir(join(source, 'safety_checker'));
      for (const path of ['README.md', 'unet/leftover.pb', 'safety_checker/model.safetensors'])
        await writeFile(join(source, path), 'nobody asks for this');
      const { hash } = await store.add(source, { as: 'x' });
      expect(await readdir(inModels('x/unet'))).toEqual(['config.json', 'diffusion_pytorch_model.safetensors']);
      expect(await readdir(inModels('x'))).not.toContain('safety_checker');
      await mkdir(join(folder, 'other'));
      await cp(source, join(folder, 'other/by-hand'), { recursive: true });
      expect(await new ModelStore(join(folder, 'other')).find('by-hand')).toMatchObject({ hash });
    });

    it('ends where its folder cannot be made, also where the file system answers that it is not there', () =>
      expect(new ModelStore('/proc/none').add(hubModel, { as: 'x' })).rejects.toThrow('/proc/none'));

    it.each([
      [hubWeights, undefined, `unet/ holds no weights. ${cures.installAgain}`],
      ['darkroom.json', '{"size": 100}', 'darkroom.json has a size that is no multiple of 64 from 256 to 2048.'],
    ])('rejects a folder whose %s is %s before it stores anything', async (path, content, message) => {
      const broken = join(folder, 'broken');
      await cp(hubModel, broken, { recursive: true });
      if (content === undefined) await rm(join(broken, path));
      else await writeFile(join(broken, path), content);
      const onProgress = jest.fn();
      await expect(store.add(broken, { as: 'x', onProgress })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: expect.stringContaining(message) as string,
      });
      expect(onProgress).not.toHaveBeenCalled();
      expect(await left()).toEqual([]);
    });

    it('names a shard that is missing', async () => {
      const source = join(await familyIn(folder, 'sd15'), 'model');
      const shard = 'unet/diffusion_pytorch_model-00002-of-00003.safetensors';
      await rm(join(source, shard));
      await expect(store.add(source, { as: 'x' })).rejects.toThrow(`${shard} is missing. ${cures.installAgain}`);
    });

    it('checks a model again that an earlier version has passed', async () => {
      await store.add(hubModel, { as: 'x' });
      await writeFile(inModels('x/vae/config.json'), '[');
      const stats = await stat(inModels('x/vae/config.json'));
      const manifest = inModels('.x.darkroom-model.json');
      const text = await readFile(manifest, 'utf8');
      const known = JSON.parse(text) as { seen: { rules: number; files: Record<string, object> } };
      known.seen.files['vae/config.json'] = { size: stats.size, mtimeMs: Math.round(stats.mtimeMs), sha256: '0' };
      await writeFile(manifest, JSON.stringify(known));
      expect((await new ModelStore(inModels()).find('x'))?.problem).toBeUndefined();
      known.seen.rules--;
      await writeFile(manifest, JSON.stringify(known));
      const problem = expect.stringMatching(/^vae\/config\.json is not valid JSON/) as string;
      expect(await new ModelStore(inModels()).find('x')).toMatchObject({ hash: undefined, problem });
      expect(await store.verify('x')).toMatchObject({ ok: false, problem });
    });

    it('passes over links to a parent folder, in a model as in the source of one', async () => {
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      for (const name of ['l1', 'l2']) await symlink('../', inModels('by-hand/unet', name));
      const model = { hash: await wantedHash() };
      expect(await store.list()).toMatchObject([model]);
      expect(await store.add(inModels('by-hand'), { as: 'x' })).toMatchObject(model);
      expect(await store.verify('by-hand')).toMatchObject({ ok: true });
    });

    it.each(['unet/config.json', hubWeights, 'tokenizer/vocab.json'])(
      'refuses a pipe in place of %s without opening it',
      async (path) => {
        await cp(hubModel, inModels('x'), { recursive: true });
        await makePipe(inModels('x', path));
        const problem = `${path} is a pipe, a socket or a device, and no file. ${cures.installAgain}`;
        expect(await store.list()).toMatchObject([{ hash: undefined, problem }]);
        await expect(store.add(inModels('x'), { as: 'y' })).rejects.toThrow(problem);
        expect(await left()).toEqual(['x']);
      },
    );

    it('reads a refused folder again only when it has changed, as everyone who names it would wait for that', async () => {
      await cp(hubModel, inModels('x'), { recursive: true });
      const catalog = new ModelCatalog(inModels());
      const refusal = (): Promise<unknown> =>
        catalog.content('x').then(
          () => undefined,
          (error: unknown) => error,
        );
      const config = await readFile(inModels('x/vae/config.json'));
      await writeFile(inModels('x/vae/config.json'), '[]');
      const first = await refusal();
      expect(await refusal()).toBe(first);
      await rename(inModels('x', hubWeights), inModels('weights'));
      await writeFile(inModels('x/vae/config.json'), config);
      expect((await refusal()) as Error).toMatchObject({ message: expect.stringMatching(/^unet[^\n]*$/) as string });
      await rename(inModels('weights'), inModels('x', hubWeights));
      expect(await refusal()).toBeUndefined();
    });

    it('opens no pipe in place of a source', async () => {
      await makePipe(join(folder, 'lora.safetensors'));
      await expect(store.add(join(folder, 'lora.safetensors'), { as: 'x' })).rejects.toThrow('is a pipe, a socket or');
    });

    it('opens no pipe in place of what is noted about a model', async () => {
      await store.add(hubModel, { as: 'x' });
      await makePipe(inModels('.x.darkroom-model.json'));
      expect(await new ModelStore(inModels()).find('x')).toMatchObject({ hash: await wantedHash() });
    });

    it('rejects invalid names and sources', async () => {
      for (const name of ['', '..', 'A', '.x', 'a/b', 'a'.repeat(65)])
        await expect(store.add(hubModel, { as: name })).rejects.toMatchObject({ code: 'InvalidModelName' });
      for (const source of ['./nowhere', 'nowhere', 'a/b/c', 'a/b@', 'a/b@../c', 'models/x.safetensors', __filename])
        await expect(store.add(source, { as: 'x' })).rejects.toMatchObject({ code: 'InvalidSource' });
    });
  });
});
