import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, readdir, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { ModelStore, hashFile } from '@app/model-store';
import { cures } from '@app/diffusion';
import type { HubServer } from '../support/hub-server';
import { eachWithModelStore, hubModel, hubWeights, tinyModels } from '../support/model-store-site';
import { ModelCatalog } from '../../libs/model-store/src/model-catalog';
import { Folder } from '../support/damaged-folder';
import { encodeGraph, encodeNode } from '../support/onnx';

/** Flips a bit but keeps size and time, as a failing disk does. */
async function changeSilently(path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  const content = await readFile(path);
  content[1000] ^= 1;
  await writeFile(path, content);
  await utimes(path, atime, mtime);
}
/** Renames the operator of one node; both names have the same length, so the file stays valid. */
function withOperator(graph: Buffer, from: string, to: string): Buffer {
  const field = (name: string): Buffer => Buffer.from([0x22, name.length, ...Buffer.from(name)]);
  const at = graph.indexOf(field(from));
  if (at < 0) throw new Error(`The graph has no ${from}.`);
  return Buffer.concat([graph.subarray(0, at), field(to), graph.subarray(at + field(from).length)]);
}
/** A graph that takes and gives what a U-Net does, with one node. */
function attentionGraph(...inputs: string[]): Buffer {
  const takes = ['sample', 'timestep', 'encoder_hidden_states'].map((name) => ({ name, shape: [] }));
  return encodeGraph([encodeNode('MultiHeadAttention', inputs, 'out_sample')], [], takes, {
    name: 'out_sample',
    shape: [],
  });
}

describe('ModelStore', () => {
  let folder: string;
  let hub: HubServer;
  let store: ModelStore;
  const { storeWith, inModels, left, wantedHash } = eachWithModelStore((site) => ({ folder, hub, store } = site));

  describe('two processes at once', () => {
    it('lets the first continue and rejects the second', async () => {
      hub.fail(hubWeights, { stallAfter: 1000 });
      const stop = new AbortController();
      const first = store.add(hub.repository, { as: 'sd1.5', signal: stop.signal });
      await once(hub, 'stalled');
      await expect(storeWith().add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'ModelLocked',
        message: expect.stringContaining(`process ${process.pid} on ${hostname()}`) as string,
      });
      await expect(storeWith().add(hubModel, { as: 'another' })).resolves.toMatchObject({ name: 'another' });
      stop.abort();
      await expect(first).rejects.toMatchObject({ code: 'Aborted' });
      await expect(store.add(hub.repository, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });

    it('takes over the lock of a dead process, once', async () => {
      const child = spawn(process.execPath, ['-e', '']);
      await once(child, 'exit');
      await mkdir(inModels());
      const dead = { pid: child.pid, host: hostname(), since: new Date().toISOString(), key: 'x' };
      await writeFile(inModels('.sd1.5.lock'), JSON.stringify(dead));
      const runs = await Promise.allSettled([1, 2, 3, 4].map(() => storeWith().add(hubModel, { as: 'sd1.5' })));
      expect(runs.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      const codes = runs.flatMap((run) =>
        run.status === 'rejected'
          ? ((run.reason as Error & { code?: string }).code ?? (run.reason as Error).stack)
          : [],
      );
      expect(codes.filter((code) => code !== 'ModelLocked' && code !== 'ModelExists')).toEqual([]);
      expect(await left()).toEqual(['.sd1.5.darkroom-model.json', 'sd1.5']);
    });

    it('leaves a dead lock to a process that is just taking it over, unless that died too', async () => {
      await mkdir(inModels());
      const longAgo = new Date(Date.now() - 3_600_000);
      for (const file of ['.sd1.5.lock', '.sd1.5.lock.takeover']) await writeFile(inModels(file), 'unreadable');
      await utimes(inModels('.sd1.5.lock'), longAgo, longAgo);
      const busy = { code: 'ModelLocked', message: 'sd1.5 is being changed by several processes at once; try again.' };
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await utimes(inModels('.sd1.5.lock.takeover'), longAgo, longAgo);
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await expect(store.add(hubModel, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });

    it('takes over a lock from another host only when it was not touched for a long time', async () => {
      await mkdir(inModels());
      const lock = inModels('.sd1.5.lock');
      await writeFile(lock, JSON.stringify({ pid: 1, host: 'elsewhere', since: 'yesterday', key: 'x' }));
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'ModelLocked',
        message: 'sd1.5 is being changed by process 1 on elsewhere since yesterday; wait for it to end.',
      });
      const longAgo = new Date(Date.now() - 3_600_000);
      await utimes(lock, longAgo, longAgo);
      await expect(store.add(hubModel, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });
  });

  const hashOf = async (from: ModelStore, name: string) => (await from.find(name))?.hash;

  describe('the hash of a model', () => {
    it('is the same for the same files and follows every change', async () => {
      await mkdir(inModels());
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      const hash = await hashOf(store, 'by-hand');
      expect(hash).toBe(await wantedHash());
      expect((await left()).includes('.by-hand.darkroom-model.json')).toBe(true);
      await writeFile(inModels('by-hand', 'README.md'), 'does not matter');
      const preview = JSON.stringify({ weights: Array(3).fill([1, 1, 1, 1]), bias: [0, 0, 0] });
      await writeFile(inModels('by-hand', 'preview.json'), preview);
      expect(await hashOf(store, 'by-hand')).toBe(hash);
      const config = inModels('by-hand', 'scheduler', 'scheduler_config.json');
      await writeFile(config, (await readFile(config, 'utf8')).replace('0.00085', '0.00086'));
      expect(await hashOf(store, 'by-hand')).not.toBe(hash);
      expect(await hashOf(storeWith(), 'by-hand')).toBe(await hashOf(store, 'by-hand'));
    });

    it('does not read a file again while its size and time stay', async () => {
      await store.add(hubModel, { as: 'x' });
      const hash = await hashOf(store, 'x');
      await changeSilently(inModels('x', hubWeights));
      expect(await hashOf(storeWith(), 'x')).toBe(hash);
    });
  });

  describe('list', () => {
    it('is empty if there is no models folder', async () => {
      expect(await store.list()).toEqual([]);
      expect(await store.find('../models')).toBeUndefined();
    });

    it('shows the problem of a broken model and lists the others', async () => {
      await store.add(hubModel, { as: 'good' });
      await mkdir(inModels('upscalers'));
      await writeFile(inModels('README.md'), 'no model');
      await mkdir(inModels('bad'));
      const [bad, good, ...others] = await store.list();
      expect(others).toEqual([]);
      expect(bad).toMatchObject({
        name: 'bad',
        problem: 'it is empty. Install it again, from a whole copy or from a new export.',
      });
      expect(good).toMatchObject({ name: 'good' });
      expect(good.problem).toBeUndefined();
    });
  });

  describe('verify', () => {
    it('names the files that differ from what was installed', async () => {
      await store.add(hubModel, { as: 'x' });
      expect(await store.verify('x')).toMatchObject({
        ok: true,
        recorded: true,
        differences: [],
        hash: await wantedHash(),
      });
      await changeSilently(inModels('x', hubWeights));
      await rm(inModels('x', 'tokenizer', 'merges.txt'));
      await writeFile(inModels('x', 'unet', 'extra.json'), '{}');
      expect(await store.verify('x')).toMatchObject({
        ok: false,
        differences: [
          { path: 'tokenizer/merges.txt', reason: 'missing' },
          { path: hubWeights, reason: 'changed' },
        ],
      });
    });

    it('finds hidden changes in a folder that was put there by hand, and accepts visible ones', async () => {
      await mkdir(inModels());
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      const before = await hashOf(store, 'by-hand');
      await changeSilently(inModels('by-hand', hubWeights));
      expect(await store.verify('by-hand')).toMatchObject({
        ok: false,
        recorded: false,
        differences: [{ path: hubWeights, reason: 'changed' }],
      });
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      expect(await store.verify('by-hand')).toMatchObject({ ok: true, recorded: false, hash: before });
    });
  });

  describe('remove', () => {
    it('removes the model and everything that belongs to it', async () => {
      await store.add(hubModel, { as: 'x' });
      await mkdir(inModels('.x.part'));
      await store.remove('x');
      expect(await left()).toEqual([]);
      await expect(store.remove('x')).rejects.toMatchObject({ code: 'ModelNotInstalled' });
      await expect(store.remove('..')).rejects.toMatchObject({ code: 'InvalidModelName' });
    });

    it('only unlinks a linked folder', async () => {
      await mkdir(inModels());
      await cp(hubModel, join(folder, 'elsewhere'), { recursive: true });
      await symlink(join(folder, 'elsewhere'), inModels('x'));
      expect(await store.find('x')).toMatchObject({ hash: await wantedHash() });
      await store.remove('x');
      expect(await left()).toEqual([]);
      expect(await readdir(join(folder, 'elsewhere'))).toContain('unet');
    });
  });
});

describe('ModelStore', () => {
  let folder: string;
  let store: ModelStore;
  const { inModels, left, wantedHash } = eachWithModelStore((site) => ({ folder, store } = site));

  describe('add from a folder', () => {
    it.each(['sd15-diffusers', 'sd21-optimum', 'sd15-fp16'])('installs %s', async (name) => {
      const model = await store.add(join(tinyModels, name), { as: name });
      expect(model).toMatchObject({ name, source: join(tinyModels, name), requiresCuda: false });
      expect(model.problem).toBeUndefined();
      expect(model.bytes).toBeGreaterThan(1_000_000);
      await expect(store.add(join(tinyModels, name), { as: name })).rejects.toMatchObject({ code: 'ModelExists' });
    });

    it('ends where its folder cannot be made, also where the file system answers that it is not there', () =>
      expect(new ModelStore('/proc/none').add(hubModel, { as: 'x' })).rejects.toThrow('/proc/none'));

    it('copies what links point to', async () => {
      await cp(hubModel, join(folder, 'linked'), { recursive: true });
      await rename(join(folder, 'linked', hubWeights), join(folder, 'blob'));
      await symlink(join(folder, 'blob'), join(folder, 'linked', hubWeights));
      await store.add(join(folder, 'linked'), { as: 'x' });
      await rm(join(folder, 'blob'));
      expect(await store.verify('x')).toMatchObject({ ok: true, hash: await wantedHash() });
    });

    it('says that a model fused for CUDA needs CUDA, unless the plain graph is beside it', async () => {
      const fused = join(folder, 'fused');
      await cp(hubModel, fused, { recursive: true });
      const graph = await readFile(join(fused, 'unet/model.onnx'));
      const other = Buffer.from(
        withOperator(graph, 'Sigmoid', 'BiasAdd').toString('latin1').replaceAll('weights.pb', 'fusedwt.pb'),
        'latin1',
      );
      await writeFile(join(fused, 'unet/model.onnx'), other);
      await cp(join(fused, hubWeights), join(fused, 'unet/fusedwt.pb'));
      expect(await store.add(fused, { as: 'fused' })).toMatchObject({ requiresCuda: true });

      await rename(join(fused, 'unet/model.onnx'), join(fused, 'unet/model_cuda.onnx'));
      expect(await store.add(fused, { as: 'fused-only' })).toMatchObject({ requiresCuda: true });

      await writeFile(join(fused, 'unet/model.onnx'), graph);
      expect(await store.add(fused, { as: 'both' })).toMatchObject({ requiresCuda: false });
      const files = ['config.json', 'fusedwt.pb', 'model.onnx', 'model_cuda.onnx', 'weights.pb'];
      expect((await readdir(inModels('both', 'unet'))).sort()).toEqual(files);
    });

    it('knows that attention with packed inputs needs CUDA, and plain attention does not', async () => {
      const fused = join(folder, 'fused');
      await cp(hubModel, fused, { recursive: true });
      await writeFile(join(fused, 'unet/model.onnx'), attentionGraph('qkv'));
      expect(await store.add(fused, { as: 'packed' })).toMatchObject({ requiresCuda: true });
      await writeFile(join(fused, 'unet/model.onnx'), attentionGraph('query', 'key', 'value'));
      expect(await store.add(fused, { as: 'plain' })).toMatchObject({ requiresCuda: false });
    });

    it('leaves out data that no graph refers to', async () => {
      await cp(hubModel, join(folder, 'padded'), { recursive: true });
      await writeFile(join(folder, 'padded/unet/leftover.pb'), 'nobody asks for this');
      expect(await store.add(join(folder, 'padded'), { as: 'x' })).toMatchObject({ hash: await wantedHash() });
      expect((await readdir(inModels('x', 'unet'))).sort()).toEqual(['config.json', 'model.onnx', 'weights.pb']);
    });

    it.each([
      ['unet/weights.pb', undefined, 'unet/weights.pb is missing'],
      ['unet/weights.pb', 'short', 'unet/weights.pb is cut short'],
      ['vae_decoder/model.onnx', 'nothing', 'vae_decoder/model.onnx is no whole ONNX model'],
      ['scheduler/scheduler_config.json', '[]', 'scheduler/scheduler_config.json'],
      ['scheduler/scheduler_config.json', undefined, 'scheduler/scheduler_config.json is missing'],
      ['model_index.json', '{"_class_name": "FluxPipeline"}', 'describes a FluxPipeline'],
      [
        'unet/config.json',
        '{"cross_attention_dim": 999}',
        'unet/config.json has a cross_attention_dim of 999, and the embeddings of the graph beside it are 32 wide.',
      ],
    ])('rejects a folder whose %s is %s before it copies anything', async (path, content, message) => {
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

    it('names everything that is wrong at once, a line each', async () => {
      const broken = join(folder, 'broken');
      await cp(hubModel, broken, { recursive: true });
      for (const path of ['scheduler', 'unet/model.onnx']) await rm(join(broken, path), { recursive: true });
      await writeFile(join(broken, 'text_encoder/config.json'), 'no\nJSON');
      await writeFile(join(broken, 'darkroom.json'), '{"steps": 0, "cfg": 50}');
      const error: unknown = await store.add(broken, { as: 'x' }).catch((thrown: unknown) => thrown);
      const lines = (error as Error).message.split('\n');
      expect(lines.map((line) => line.replace(/(?<=is missing|graph|JSON|50|to 20)[ .].*/, ''))).toEqual([
        `${broken} is no model to draw with:`,
        '  scheduler/scheduler_config.json is missing',
        '  unet/ holds no .onnx graph',
        '  darkroom.json has steps that are no integer from 1 to 50',
        '  darkroom.json has a cfg that is no number from 1 to 20',
        '  text_encoder/config.json is not valid JSON',
      ]);
      expect(await left()).toEqual([]);
    });

    it('checks a model again that an earlier version has passed', async () => {
      await cp(hubModel, inModels('x'), { recursive: true });
      await cp(join(hubModel, 'vae_decoder'), inModels('x/unet'), { recursive: true });
      const files = { 'unet/model.onnx': await hashFile(inModels('x/unet/model.onnx')) };
      const installed = { source: hubModel, addedAt: '', files };
      const passed = { cudaOnly: [], fixed: {} };
      await new ModelCatalog(inModels()).record('x', new Map(Object.entries(files)), passed, installed);
      expect((await store.find('x'))?.problem).toBeUndefined();
      const manifest = inModels('.x.darkroom-model.json');
      await writeFile(manifest, (await readFile(manifest, 'utf8')).replace(/,\s*"rules": \d+/, ''));
      const problem = expect.stringMatching(
        /^unet\/model\.onnx is the graph of another part: it takes latent_sample/,
      ) as string;
      expect(await store.find('x')).toMatchObject({ hash: undefined, problem });
      expect(await store.verify('x')).toMatchObject({ ok: false, differences: [], problem });
    });

    it('passes over links to a parent folder, in a model as in the source of one', async () => {
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      for (const name of ['l1', 'l2']) await symlink('../', inModels('by-hand/unet', name));
      const model = { hash: await wantedHash() };
      expect(await store.list()).toMatchObject([model]);
      expect(await store.add(inModels('by-hand'), { as: 'x' })).toMatchObject(model);
      expect(await store.verify('by-hand')).toMatchObject({ ok: true });
    });

    it.each(['unet/config.json', 'unet/weights.pb', 'tokenizer/tokenizer.json'])(
      'refuses a pipe in place of %s without opening it',
      async (path) => {
        await cp(hubModel, inModels('x'), { recursive: true });
        await new Folder(inModels('x')).makePipe(path);
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
      const index = await readFile(inModels('x/model_index.json'));
      await rm(inModels('x', hubWeights));
      await writeFile(inModels('x/model_index.json'), '[]');
      const both = await refusal();
      expect((both as Error).message).toMatch(/^model_index\.json .*\nunet\/weights\.pb is missing/);
      expect(await refusal()).toBe(both);

      await writeFile(inModels('x/model_index.json'), index);
      expect((await refusal()) as Error).toMatchObject({ message: expect.stringMatching(/^unet[^\n]*$/) as string });
      await cp(join(hubModel, hubWeights), inModels('x', hubWeights));
      expect(await refusal()).toBeUndefined();
    });

    it('says where a LoRA belongs', async () => {
      const file = join(tinyModels, '../lora/zwx-robot-kohya.safetensors');
      await expect(store.add(file, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidSource',
        message: expect.stringMatching(
          /kohya\.safetensors is a LoRA and no model: it belongs to a Fine-Tune.* PUT \/v1\/finetunes\/<id>\/weights/,
        ) as string,
      });
    });

    it.each([
      ['model.safetensors', 'is a checkpoint of PyTorch, and no folder with ONNX graphs: convert it first'],
      ['model.onnx', 'is one graph: name the folder with all parts of the model.'],
      ['model.zip', 'is a file, and no folder with a model.'],
    ])('says what %s is in place of a folder', async (name, message) => {
      const file = join(folder, name);
      await writeFile(file, '');
      await expect(store.add(file, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidSource',
        message: expect.stringContaining(`${file} ${message}`) as string,
      });
    });

    it('opens no pipe in place of a source', async () => {
      await new Folder(folder).makePipe('lora.safetensors');
      await expect(store.add(join(folder, 'lora.safetensors'), { as: 'x' })).rejects.toThrow('is a pipe, a socket or');
    });

    it('opens no pipe in place of what is noted about a model', async () => {
      await store.add(hubModel, { as: 'x' });
      await new Folder(inModels()).makePipe('.x.darkroom-model.json');
      expect(await new ModelStore(inModels()).find('x')).toMatchObject({ hash: await wantedHash() });
    });

    it('rejects invalid names and sources', async () => {
      for (const name of ['', '..', 'A', '.x', 'a/b', 'a'.repeat(65)])
        await expect(store.add(hubModel, { as: name })).rejects.toMatchObject({ code: 'InvalidModelName' });
      for (const source of ['./nowhere', 'nowhere', 'a/b/c', 'a/b@', 'a/b@../c', __filename])
        await expect(store.add(source, { as: 'x' })).rejects.toMatchObject({ code: 'InvalidSource' });
    });
  });
});
