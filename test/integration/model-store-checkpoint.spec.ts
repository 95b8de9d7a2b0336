import { appendFile, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cures } from '@app/diffusion/files';
import type { ModelStore } from '@app/model-store';
import { tryModel } from '../../apps/cli/src/model-report';
import { eachWithModelStore, familyIn, hubModel } from '../support/model-store-site';

describe('ModelStore', () => {
  let folder: string;
  let store: ModelStore;
  const { inModels, left } = eachWithModelStore((site) => ({ folder, store } = site));
  const tryOut = async (at: string, signal: AbortSignal): Promise<void> => void (await tryModel(at, signal));
  const inode = async (path: string): Promise<number> => (await stat(path)).ino;

  describe('add of a checkpoint', () => {
    it.each([
      ['sd15-file', { family: 'sd1', nativeSize: 512, scheduler: 'PNDMScheduler' }],
      ['sd21-file', { family: 'sd2', nativeSize: 768, scheduler: 'DDIMScheduler' }],
      ['sdxl-file', { family: 'sdxl', nativeSize: 1024, scheduler: 'EulerDiscreteScheduler' }],
    ])('recognises %s, and stores nothing twice', async (name, facts) => {
      const file = join(await familyIn(folder, name), 'model.safetensors');
      const { size, ino } = await stat(file);
      const model = await store.add(file, { as: 'sd1.5', tryOut });
      expect(model).toMatchObject({ name: 'sd1.5', source: file, kind: 'text-to-image', isLinked: true, ...facts });
      expect(model.bytes).toBe(size);
      expect(await inode(inModels('sd1.5', 'model.safetensors'))).toBe(ino);
      expect(await store.list()).toMatchObject([{ name: 'sd1.5', hash: model.hash, ...facts }]);
      expect(await store.verify('sd1.5')).toMatchObject({ ok: true, hash: model.hash });
      await store.remove('sd1.5');
      expect((await stat(file)).size).toBe(size);
    });

    it('follows a link, as the cache of the hub has them, and does not need the source afterwards', async () => {
      const file = join(await familyIn(folder, 'sd15-file'), 'model.safetensors');
      await symlink(file, join(folder, 'linked.safetensors'));
      const { hash } = await store.add(join(folder, 'linked.safetensors'), { as: 'x' });
      await rm(file);
      expect(await store.verify('x')).toMatchObject({ ok: true, hash });
    });

    it('takes another autoencoder, and what its tensors cannot tell', async () => {
      const file = join(await familyIn(folder, 'sd15-file'), 'model.safetensors');
      const plain = await store.add(file, { as: 'plain' });
      const vae = join(await familyIn(folder, 'sd21-file'), 'model.safetensors');
      const defaults = { clip_skip: 2, size: 768, prediction_type: 'v_prediction' } as const;
      const model = await store.add(file, { as: 'x', vae, defaults, tryOut });
      expect(model).toMatchObject({ nativeSize: 768, defaults });
      expect(model.hash).not.toBe(plain.hash);
      expect(JSON.parse(await readFile(inModels('x/darkroom.json'), 'utf8'))).toEqual(defaults);
      expect((await readdir(inModels('x'))).sort()).toEqual(['darkroom.json', 'model.safetensors', 'vae.safetensors']);
      // A change by hand shows at once.
      await writeFile(inModels('x/darkroom.json'), '{"size": 640}');
      expect(await store.find('x')).toMatchObject({ nativeSize: 640, hash: model.hash });
    });

    it.each<[what: string, source: string[], vae: string[], sentence: string]>([
      [
        'a LoRA',
        ['sd15/adapters/lora-linear-kohya.safetensors'],
        [],
        `is a LoRA, which changes a model and is none. ${cures.toFinetune}`,
      ],
      [
        'a DoRA',
        ['sd15/adapters/dora-peft.safetensors'],
        [],
        `is a LoRA, which changes a model and is none. ${cures.toFinetune}`,
      ],
      [
        'an embedding',
        ['sd15/adapters/zig.safetensors'],
        [],
        `is a textual inversion, which teaches a model a word. ${cures.toFinetune}`,
      ],
      [
        'an embedding of XL',
        ['sdxl/adapters/zig.safetensors'],
        [],
        `is a textual inversion, which teaches a model a word. ${cures.toFinetune}`,
      ],
      [
        'a ControlNet',
        ['sd15/control/diffusion_pytorch_model.safetensors'],
        [],
        'is a ControlNet, which guides a model and draws nothing by itself.',
      ],
      [
        'a U-Net',
        ['sd21/model/unet/diffusion_pytorch_model.safetensors'],
        [],
        `lacks the text encoder (text_encoder) and the autoencoder (vae) and has only the U-Net (unet). ${cures.wholeModel}`,
      ],
      [
        'a VAE',
        ['sd21/model/vae/diffusion_pytorch_model.safetensors'],
        [],
        `lacks the U-Net (unet) and the text encoder (text_encoder) and has only the autoencoder (vae). ${cures.wholeModel}`,
      ],
      [
        'a text encoder',
        ['sd21/model/text_encoder/model.safetensors'],
        [],
        `is a text encoder alone. ${cures.wholeModel}`,
      ],
      [
        'a VAE that is none',
        ['sd15-file/model.safetensors'],
        ['sd15/adapters/zig.safetensors'],
        `is a textual inversion, which teaches a model a word. ${cures.ownVae}`,
      ],
    ])('says what %s is and what to do, and leaves nothing', async (_, [source], [vae], sentence) => {
      const [file, other] = await Promise.all(
        [source, vae].map(async (path) => {
          if (path === undefined) return undefined;
          const [family, ...inside] = path.split('/');
          return join(await familyIn(folder, family), ...inside);
        }),
      );
      await expect(store.add(file!, { as: 'x', ...(other && { vae: other }) })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: expect.stringContaining(`${other ?? file} ${sentence}`) as string,
      });
      expect(await left()).toEqual([]);
    });

    it.each([
      ['model.ckpt', `is a file of Python objects, which runs code when it is read. ${cures.safetensors}`],
      ['vae.pt', `is a file of Python objects, which runs code when it is read. ${cures.safetensors}`],
      ['model.onnx', 'is one graph: name the folder with all parts of the model.'],
      ['model.zip', 'is no .safetensors or .gguf file, and no folder with a model.'],
    ])('does not read %s', async (name, sentence) => {
      const file = join(folder, name);
      await writeFile(file, 'x');
      const refusal = { code: 'InvalidSource', message: `${file} ${sentence}` };
      await expect(store.add(file, { as: 'x' })).rejects.toMatchObject(refusal);
      await expect(store.add(hubModel, { as: 'x', vae: file })).rejects.toMatchObject(refusal);
    });

    it.each<[what: string, change: (file: string) => Promise<unknown>, sentence: string]>([
      ['cut short', (file) => truncate(file, 1e6), ' cannot be read: The tensor '],
      [
        'with more behind it',
        (file) => appendFile(file, 'x'),
        ' cannot be read: There are 1 bytes after the last tensor. ',
      ],
      [
        'a pointer of Git LFS',
        (file) => writeFile(file, 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n'),
        ` is only a pointer of Git LFS. ${cures.getFile}`,
      ],
      [
        'a page of a site',
        (file) => writeFile(file, '<!doctype html><title>Log in</title>'),
        ' cannot be read: The file is a web page',
      ],
    ])('refuses one that is %s', async (_, change, sentence) => {
      const file = join(await familyIn(folder, 'sd15-file'), 'model.safetensors');
      await change(file);
      await expect(store.add(file, { as: 'x' })).rejects.toThrow(`${file}${sentence}`);
    });
  });
});
