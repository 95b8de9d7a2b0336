import type { ModelProgress } from '@app/model-store';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelStore } from '@app/model-store';
import { HubServer } from '../support/hub-server';

const tiny = join(__dirname, '../golden/models/tiny');
const diffusers = join(tiny, 'sd15-diffusers');
const weights = 'unet/weights.pb';

describe('ModelStore', () => {
  let folder: string;
  let hub: HubServer;
  let store: ModelStore;

  const storeWith = (options: object = {}): ModelStore =>
    new ModelStore(join(folder, 'models'), { endpoint: hub.url, token: 'hf_secret', retryDelayMs: 1, ...options });
  const inModels = (...path: string[]): string => join(folder, 'models', ...path);
  const left = async (): Promise<string[]> => (await readdir(inModels())).sort();

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    hub = await HubServer.start();
    hub.publishFolder(diffusers);
    store = storeWith();
  });

  afterEach(async () => {
    await hub.close();
    await rm(folder, { recursive: true });
  });

  /** The expected hash of the model that the hub serves, computed without the hub. */
  const wantedHash = async (): Promise<string> => {
    const other = new ModelStore(join(folder, 'other'));
    return (await other.add(diffusers, { as: 'wanted' })).hash!;
  };

  describe('add from the hub', () => {
    it('installs a complete repository under its name and leaves nothing beside it', async () => {
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      expect(model).toMatchObject({
        name: 'sd1.5',
        folder: inModels('sd1.5'),
        source: `${hub.repository}@${hub.commit}`,
        requiresCuda: false,
        hash: await wantedHash(),
      });
      expect(model.problem).toBeUndefined();
      expect(await left()).toEqual(['.sd1.5.darkroom-model.json', 'sd1.5']);
      expect(await readFile(inModels('sd1.5', weights))).toEqual(hub.content(weights));
      expect(await store.list()).toEqual([model]);
    });

    it('downloads only what is needed', async () => {
      const unwanted = [
        'README.md',
        'unet/diffusion_pytorch_model.safetensors',
        'unet/model_fp16.onnx',
        'unet/model_fp16.onnx_data',
        'safety_checker/model.onnx',
        'vae_encoder/model.onnx',
        'text_encoder/flax_model.msgpack',
      ];
      for (const path of unwanted) hub.publish(path, `not wanted: ${path}`);
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      const fetched = new Set(hub.requests.map(({ file }) => file));
      expect(unwanted.filter((path) => fetched.has(path))).toEqual([]);
      expect(model.hash).toBe(await wantedHash());
    });

    it('sends the token to the hub but never to a host that it redirects to', async () => {
      await store.add(hub.repository, { as: 'sd1.5' });
      const tokens = (host: string): unknown[] =>
        hub.requests.filter((request) => request.host === host).map(({ headers }) => headers.authorization);
      expect(new Set(tokens('hub'))).toEqual(new Set(['Bearer hf_secret']));
      expect(tokens('store').length).toBeGreaterThan(3);
      expect(new Set(tokens('store'))).toEqual(new Set([undefined]));
    });

    it('accepts a revision and rejects one that does not exist', async () => {
      await store.add(`${hub.repository}@refs/pr/1`, { as: 'one' });
      await expect(store.add(`${hub.repository}@nowhere`, { as: 'two' })).rejects.toMatchObject({
        code: 'HubRefused',
        message: expect.stringContaining(`${hub.repository}@nowhere is not at`) as string,
      });
    });

    it('resumes after a broken connection', async () => {
      hub.fail(weights, { dropAfter: 300_000 });
      hub.fail(weights, { dropAfter: 200_000 });
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      const [first, second, third, ...more] = hub.requestsFor(weights).map(({ headers }) => headers);
      expect(first.range).toBeUndefined();
      expect(begin(second.range)).toBeGreaterThan(0);
      expect(begin(third.range)).toBeGreaterThan(begin(second.range));
      expect(second['if-range']).toMatch(/^"[0-9a-f]{64}"$/);
      expect(more).toEqual([]);
      expect(model.hash).toBe(await wantedHash());
    });

    it('resumes an interrupted download in a second run', async () => {
      hub.fail(weights, { dropAfter: 400_000 });
      const first = storeWith({ retries: 0 }).add(hub.repository, { as: 'sd1.5' });
      await expect(first).rejects.toMatchObject({ code: 'HubUnreachable' });
      expect(await left()).toEqual(['.sd1.5.part']);
      const model = await storeWith().add(hub.repository, { as: 'sd1.5' });
      expect(model.hash).toBe(await wantedHash());
      const [, resumed] = hub.requestsFor(weights).map(({ headers }) => headers);
      expect(begin(resumed.range)).toBeGreaterThan(0);
      expect(resumed['if-range']).toBeDefined();
      expect(await left()).toEqual(['.sd1.5.darkroom-model.json', 'sd1.5']);
    });

    it('starts over in a second run when the repository has changed', async () => {
      hub.fail(weights, { dropAfter: 400_000 });
      const first = storeWith({ retries: 0 }).add(hub.repository, { as: 'sd1.5' });
      await expect(first).rejects.toMatchObject({ code: 'HubUnreachable' });
      const changed = Buffer.from(hub.content(weights));
      changed[0] ^= 1;
      hub.publish(weights, changed);
      await store.add(hub.repository, { as: 'sd1.5' });
      expect(hub.requestsFor(weights).at(-1)!.headers.range).toBeUndefined();
      expect(await readFile(inModels('sd1.5', weights))).toEqual(changed);
    });

    it.each([
      ['sends the whole file where a range was asked for', 2, { ignoreRange: true }],
      ['answers with another range', 3, { status: 206, headers: { 'content-range': 'bytes 0-998911/998912' } }],
      ['answers with a range of another file', 3, { status: 206, headers: { 'content-range': 'bytes 0-9/10' } }],
      ['has another file by now', 3, { status: 206, headers: { etag: '"another"' } }],
      ['finds the range impossible', 3, { status: 416 }],
      ['resumes with wrong bytes', 3, { corrupt: true }],
    ])('is not misled by a server that %s', async (_, requests, lie) => {
      hub.fail(weights, { dropAfter: 300_000 });
      hub.fail(weights, lie);
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      const ranges = hub.requestsFor(weights).map(({ headers }) => headers.range);
      expect(ranges).toStrictEqual([undefined, expect.any(String), undefined].slice(0, requests));
      expect(model.hash).toBe(await wantedHash());
    });

    it('is not misled by a longer, a shorter or another text file', async () => {
      hub.fail('model_index.json', {
        content: Buffer.from('{"much": "longer than the file that was listed"}'.repeat(50)),
      });
      hub.fail('tokenizer/vocab.json', { content: Buffer.from('{}') });
      hub.fail('tokenizer/merges.txt', { corrupt: true });
      expect((await store.add(hub.repository, { as: 'sd1.5' })).hash).toBe(await wantedHash());
    });

    it('closes a silent connection and tries again', async () => {
      hub.fail(weights, { stallAfter: 100_000 });
      const model = await storeWith({ idleTimeoutMs: 1_000 }).add(hub.repository, { as: 'sd1.5' });
      // On a busy machine a working connection may be silent for this long, too.
      expect(hub.requestsFor(weights).length).toBeGreaterThan(1);
      expect(model.hash).toBe(await wantedHash());
    });

    it('rejects a file that stays corrupt and installs nothing', async () => {
      hub.fail(weights, { corrupt: true }, 100);
      await expect(store.add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'CorruptFile',
        message: `${weights} of ${hub.repository} arrived 2 times with the wrong checksum.`,
      });
      expect(hub.requestsFor(weights)).toHaveLength(2);
      expect(await store.find('sd1.5')).toBeUndefined();
    });

    it.each([
      [401, {}, 'does not exist or the token in HF_TOKEN is refused'],
      [403, { 'x-error-code': 'GatedRepo' }, 'accept its licence'],
      [404, {}, 'check the name and the revision'],
    ])('explains %i at once', async (status, headers, text) => {
      hub.fail('listing', { status, headers }, 100);
      await expect(store.add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'HubRefused',
        message: expect.stringContaining(text) as string,
      });
      expect(hub.requests).toHaveLength(1);
    });

    it('waits and retries when the hub is busy', async () => {
      hub.fail('listing', { status: 429, headers: { 'retry-after': '0' } });
      hub.fail(weights, { status: 503 }, 2);
      hub.fail('model_index.json', { status: 500 });
      expect((await store.add(hub.repository, { as: 'sd1.5' })).hash).toBe(await wantedHash());
      expect(hub.requestsFor('listing')).toHaveLength(2);
      expect(hub.requestsFor(weights)).toHaveLength(3);
    });

    it('asks the hub again when the signed address of its storage has expired', async () => {
      hub.fail(weights, { status: 403 });
      expect((await store.add(hub.repository, { as: 'sd1.5' })).hash).toBe(await wantedHash());
    });

    it('gives up after the last retry, and keeps what was downloaded', async () => {
      hub.fail(weights, { status: 503 }, 100);
      await expect(storeWith({ retries: 2 }).add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'HubUnreachable',
        message: expect.stringMatching(
          /^unet\/weights.pb of someone\/tiny could not be downloaded: .* answers 503\.$/,
        ) as string,
      });
      expect(hub.requestsFor(weights)).toHaveLength(3);
      expect(await left()).toEqual(['.sd1.5.part']);
    });

    it('says which host cannot be reached', async () => {
      const gone = await HubServer.start();
      const { url } = gone;
      await gone.close();
      await expect(storeWith({ endpoint: url, retries: 1 }).add('a/b', { as: 'x' })).rejects.toMatchObject({
        code: 'HubUnreachable',
        message: expect.stringContaining(`${new URL(url).host} cannot be reached (ECONNREFUSED)`) as string,
      });
    });

    it('checks the disk space first', async () => {
      hub.publish('unet/model.onnx_data', 'tiny', 10 ** 15);
      await expect(store.add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'NoSpace',
        message: expect.stringMatching(/^The model needs 1.00 PB more and the disk of .* has .* free\.$/) as string,
      });
      expect(hub.requests.map(({ file }) => file)).toEqual(['listing']);
    });

    it.each([
      '../outside.json',
      'unet/../../outside.json',
      '/etc/outside.json',
      'unet\\..\\outside.json',
      'unet//x.json',
    ])('rejects a listing that names %s', async (path) => {
      hub.publish(path, 'outside');
      await expect(store.add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'HubRefused',
        message: expect.stringContaining(JSON.stringify(path)) as string,
      });
      expect(hub.requests.map(({ file }) => file)).toEqual(['listing']);
    });

    it('rejects a repository without ONNX files before it downloads anything', async () => {
      const other = await HubServer.start('someone/pytorch');
      for (const path of [
        'model_index.json',
        'scheduler/scheduler_config.json',
        'tokenizer/vocab.json',
        'tokenizer/merges.txt',
      ])
        other.publish(path, '{}');
      other.publish('unet/diffusion_pytorch_model.safetensors', 'weights');
      await expect(storeWith({ endpoint: other.url }).add(other.repository, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: 'someone/pytorch@main is no model to draw with: text_encoder/ holds no .onnx graph.',
      });
      expect(other.requests.map(({ file }) => file)).toEqual(['listing']);
      await other.close();
      expect(await left()).toEqual([]);
    });

    it('rejects a complete download with an invalid graph, and leaves nothing', async () => {
      hub.publish('unet/model.onnx', 'no graph at all');
      await expect(store.add(hub.repository, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: expect.stringContaining('unet/model.onnx') as string,
      });
      expect(await left()).toEqual([]);
    });

    it('reports bytes that never exceed the total, and the end', async () => {
      const reports: ModelProgress[] = [];
      hub.fail(weights, { dropAfter: 300_000 });
      await store.add(hub.repository, { as: 'sd1.5', onProgress: (progress) => reports.push(progress) });
      const last = reports.at(-1)!;
      expect(last).toMatchObject({ phase: 'download', doneFiles: last.totalFiles, doneBytes: last.totalBytes });
      expect(reports.filter(({ doneBytes, totalBytes }) => doneBytes > totalBytes)).toEqual([]);
    });
  });

  describe('two processes at once', () => {
    it('lets the first continue and rejects the second', async () => {
      hub.fail(weights, { stallAfter: 1000 });
      const stop = new AbortController();
      const first = store.add(hub.repository, { as: 'sd1.5', signal: stop.signal });
      await once(hub, 'stalled');
      await expect(storeWith().add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'ModelLocked',
        message: expect.stringContaining(`process ${process.pid} on ${hostname()}`) as string,
      });
      await expect(storeWith().add(diffusers, { as: 'another' })).resolves.toMatchObject({ name: 'another' });
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
      const runs = await Promise.allSettled([1, 2, 3, 4].map(() => storeWith().add(diffusers, { as: 'sd1.5' })));
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
      await expect(store.add(diffusers, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await expect(store.add(diffusers, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await utimes(inModels('.sd1.5.lock.takeover'), longAgo, longAgo);
      await expect(store.add(diffusers, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await expect(store.add(diffusers, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });

    it('takes over a lock from another host only when it was not touched for a long time', async () => {
      await mkdir(inModels());
      const lock = inModels('.sd1.5.lock');
      await writeFile(lock, JSON.stringify({ pid: 1, host: 'elsewhere', since: 'yesterday', key: 'x' }));
      await expect(store.add(diffusers, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'ModelLocked',
        message: 'sd1.5 is being changed by process 1 on elsewhere since yesterday; wait for it to end.',
      });
      const longAgo = new Date(Date.now() - 3_600_000);
      await utimes(lock, longAgo, longAgo);
      await expect(store.add(diffusers, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });
  });

  describe('add from a folder', () => {
    it.each(['sd15-diffusers', 'sd21-optimum', 'sd15-fp16'])('installs %s', async (name) => {
      const model = await store.add(join(tiny, name), { as: name });
      expect(model).toMatchObject({ name, source: join(tiny, name), requiresCuda: false });
      expect(model.problem).toBeUndefined();
      expect(model.bytes).toBeGreaterThan(1_000_000);
      await expect(store.add(join(tiny, name), { as: name })).rejects.toMatchObject({ code: 'ModelExists' });
    });

    it('copies what links point to', async () => {
      await cp(diffusers, join(folder, 'linked'), { recursive: true });
      await rename(join(folder, 'linked', weights), join(folder, 'blob'));
      await symlink(join(folder, 'blob'), join(folder, 'linked', weights));
      await store.add(join(folder, 'linked'), { as: 'x' });
      await rm(join(folder, 'blob'));
      expect(await store.verify('x')).toMatchObject({ ok: true, hash: await wantedHash() });
    });

    it('says that a model fused for CUDA needs CUDA, unless the plain graph is beside it', async () => {
      const fused = join(folder, 'fused');
      await cp(diffusers, fused, { recursive: true });
      const graph = await readFile(join(fused, 'unet/model.onnx'));
      const other = Buffer.from(
        withOperator(graph, 'Sigmoid', 'BiasAdd').toString('latin1').replaceAll('weights.pb', 'fusedwt.pb'),
        'latin1',
      );
      await writeFile(join(fused, 'unet/model.onnx'), other);
      await cp(join(fused, weights), join(fused, 'unet/fusedwt.pb'));
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
      await cp(diffusers, fused, { recursive: true });
      await writeFile(join(fused, 'unet/model.onnx'), attentionGraph('qkv'));
      expect(await store.add(fused, { as: 'packed' })).toMatchObject({ requiresCuda: true });
      await writeFile(join(fused, 'unet/model.onnx'), attentionGraph('query', 'key', 'value'));
      expect(await store.add(fused, { as: 'plain' })).toMatchObject({ requiresCuda: false });
    });

    it('leaves out data that no graph refers to', async () => {
      await cp(diffusers, join(folder, 'padded'), { recursive: true });
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
    ])('rejects a folder whose %s is %s', async (path, content, message) => {
      const broken = join(folder, 'broken');
      await cp(diffusers, broken, { recursive: true });
      if (content === undefined) await rm(join(broken, path));
      else await writeFile(join(broken, path), content);
      await expect(store.add(broken, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: expect.stringContaining(message) as string,
      });
      expect(await left()).toEqual([]);
    });

    it('rejects invalid names and sources', async () => {
      for (const name of ['', '..', 'A', '.x', 'a/b', 'a'.repeat(65)])
        await expect(store.add(diffusers, { as: name })).rejects.toMatchObject({ code: 'InvalidModelName' });
      for (const source of ['./nowhere', 'nowhere', 'a/b/c', 'a/b@', 'a/b@../c', __filename])
        await expect(store.add(source, { as: 'x' })).rejects.toMatchObject({ code: 'InvalidSource' });
    });
  });

  describe('hashOf', () => {
    it('is the same for the same files and follows every change', async () => {
      await mkdir(inModels());
      await cp(diffusers, inModels('by-hand'), { recursive: true });
      const hash = await store.hashOf('by-hand');
      expect(hash).toBe(await wantedHash());
      expect((await left()).includes('.by-hand.darkroom-model.json')).toBe(true);
      await writeFile(inModels('by-hand', 'README.md'), 'does not matter');
      await writeFile(inModels('by-hand', 'preview.json'), '{"weights": [[1], [1], [1]], "bias": [0, 0, 0]}');
      expect(await store.hashOf('by-hand')).toBe(hash);
      const config = inModels('by-hand', 'scheduler', 'scheduler_config.json');
      await writeFile(config, (await readFile(config, 'utf8')).replace('0.00085', '0.00086'));
      expect(await store.hashOf('by-hand')).not.toBe(hash);
      expect(await storeWith().hashOf('by-hand')).toBe(await store.hashOf('by-hand'));
    });

    it('does not read a file again while its size and time stay', async () => {
      await store.add(diffusers, { as: 'x' });
      const hash = await store.hashOf('x');
      await changeSilently(inModels('x', weights));
      expect(await storeWith().hashOf('x')).toBe(hash);
    });

    it('rejects a model that is not installed', async () => {
      await expect(store.hashOf('nothing')).rejects.toMatchObject({ code: 'ModelNotInstalled' });
    });
  });

  describe('list', () => {
    it('is empty if there is no models folder', async () => {
      expect(await store.list()).toEqual([]);
      expect(await store.find('../models')).toBeUndefined();
    });

    it('shows the problem of a broken model and lists the others', async () => {
      await store.add(diffusers, { as: 'good' });
      await mkdir(inModels('upscalers'));
      await writeFile(inModels('README.md'), 'no model');
      await mkdir(inModels('bad'));
      const [bad, good, ...others] = await store.list();
      expect(others).toEqual([]);
      expect(bad).toMatchObject({ name: 'bad', problem: 'model_index.json is missing.' });
      expect(good).toMatchObject({ name: 'good' });
      expect(good.problem).toBeUndefined();
    });
  });

  describe('verify', () => {
    it('names the files that differ from what was installed', async () => {
      await store.add(diffusers, { as: 'x' });
      expect(await store.verify('x')).toMatchObject({
        ok: true,
        recorded: true,
        differences: [],
        hash: await wantedHash(),
      });
      await changeSilently(inModels('x', weights));
      await rm(inModels('x', 'tokenizer', 'merges.txt'));
      await writeFile(inModels('x', 'unet', 'extra.json'), '{}');
      expect(await store.verify('x')).toMatchObject({
        ok: false,
        differences: [
          { path: 'tokenizer/merges.txt', reason: 'missing' },
          { path: weights, reason: 'changed' },
        ],
      });
    });

    it('finds hidden changes in a folder that was put there by hand, and accepts visible ones', async () => {
      await mkdir(inModels());
      await cp(diffusers, inModels('by-hand'), { recursive: true });
      const before = await store.hashOf('by-hand');
      await changeSilently(inModels('by-hand', weights));
      expect(await store.verify('by-hand')).toMatchObject({
        ok: false,
        recorded: false,
        differences: [{ path: weights, reason: 'changed' }],
      });
      await cp(diffusers, inModels('by-hand'), { recursive: true });
      expect(await store.verify('by-hand')).toMatchObject({ ok: true, recorded: false, hash: before });
    });
  });

  describe('remove', () => {
    it('removes the model and everything that belongs to it', async () => {
      await store.add(diffusers, { as: 'x' });
      await mkdir(inModels('.x.part'));
      await store.remove('x');
      expect(await left()).toEqual([]);
      await expect(store.remove('x')).rejects.toMatchObject({ code: 'ModelNotInstalled' });
      await expect(store.remove('..')).rejects.toMatchObject({ code: 'InvalidModelName' });
    });

    it('only unlinks a linked folder', async () => {
      await mkdir(inModels());
      await cp(diffusers, join(folder, 'elsewhere'), { recursive: true });
      await symlink(join(folder, 'elsewhere'), inModels('x'));
      expect(await store.find('x')).toMatchObject({ hash: await wantedHash() });
      await store.remove('x');
      expect(await left()).toEqual([]);
      expect(await readdir(join(folder, 'elsewhere'))).toContain('unet');
    });
  });
});

const begin = (range: string | undefined): number => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]);

/** Renames the operator of one node; both names have the same length, so the file stays valid. */
function withOperator(graph: Buffer, from: string, to: string): Buffer {
  const field = (name: string): Buffer => Buffer.from([0x22, name.length, ...Buffer.from(name)]);
  const at = graph.indexOf(field(from));
  if (at < 0) throw new Error(`The graph has no ${from}.`);
  return Buffer.concat([graph.subarray(0, at), field(to), graph.subarray(at + field(from).length)]);
}

/** An ONNX model with one node. Its fields: ModelProto.graph 7, GraphProto.node 1, NodeProto.input 1, output 2, op_type 4, domain 7. */
function attentionGraph(...inputs: string[]): Buffer {
  const field = (number: number, value: string | Buffer): Buffer =>
    Buffer.concat([Buffer.from([number * 8 + 2, value.length]), Buffer.from(value as string)]);
  const node = Buffer.concat([
    ...inputs.map((input) => field(1, input)),
    field(2, 'out'),
    field(4, 'MultiHeadAttention'),
    field(7, 'com.microsoft'),
  ]);
  return field(7, field(1, node));
}

/** Flips a bit but keeps size and time, as a failing disk does. */
async function changeSilently(path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  const content = await readFile(path);
  content[1000] ^= 1;
  await writeFile(path, content);
  await utimes(path, atime, mtime);
}
