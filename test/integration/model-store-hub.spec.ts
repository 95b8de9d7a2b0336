import { type ModelProgress, type ModelStore } from '@app/model-store';
import { readdir, readFile, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { cures } from '@app/diffusion/files';
import { startConnectProxy } from '../support/connect-proxy';
import { HubServer } from '../support/hub-server';
import { eachWithModelStore, familyIn, hubWeights } from '../support/model-store-site';

describe('ModelStore', () => {
  let folder: string;
  let hub: HubServer;
  let store: ModelStore;
  const { storeWith, inModels, left, wantedHash } = eachWithModelStore((site) => ({ folder, hub, store } = site));

  describe('add from the hub', () => {
    it('installs a complete repository under its name and leaves nothing beside it', async () => {
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      expect(model).toMatchObject({
        name: 'sd1.5',
        folder: inModels('sd1.5'),
        source: `${hub.repository}@${hub.commit}`,
        family: 'sdxl',
        nativeSize: 1024,
        hash: await wantedHash(),
      });
      expect(model.problem).toBeUndefined();
      expect(await left()).toEqual(['.sd1.5.darkroom-model.json', 'sd1.5']);
      expect(await readFile(inModels('sd1.5', hubWeights))).toEqual(hub.content(hubWeights));
      const { isLinked: _, ...listed } = model;
      expect(await store.list()).toEqual([listed]);
    });

    it('downloads only what is needed', async () => {
      const unwanted = [
        'README.md',
        'sd_xl_base_1.0.safetensors',
        'unet/diffusion_pytorch_model.safetensors',
        'unet/diffusion_pytorch_model.bin',
        'unet/diffusion_pytorch_model.non_ema.safetensors',
        'unet/model.onnx',
        'unet/model.onnx_data',
        'text_encoder/flax_model.msgpack',
        'safety_checker/model.fp16.safetensors',
        'vae_1_0/diffusion_pytorch_model.fp16.safetensors',
      ];
      for (const path of unwanted) hub.publish(path, `not wanted: ${path}`);
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      const fetched = new Set(hub.requests.map(({ file }) => file));
      expect(unwanted.filter((path) => fetched.has(path))).toEqual([]);
      expect(model.hash).toBe(await wantedHash());
    });

    it('goes through the proxy of the environment, and not where NO_PROXY names the host', async () => {
      const proxy = await startConnectProxy();
      const before = { ...process.env };
      try {
        Object.assign(process.env, { http_proxy: proxy.url, no_proxy: '127.0.0.1' });
        await store.add(hub.repository, { as: 'direct' });
        expect(proxy.asked).toEqual([]);
        process.env.no_proxy = 'elsewhere.example';
        await store.add(hub.repository, { as: 'sd1.5' });
        expect(new Set(proxy.asked)).toEqual(new Set([hub.url, hub.storeUrl].map((url) => new URL(url).host)));
        await proxy.close();
        await expect(store.add(hub.repository, { as: 'third' })).rejects.toThrow(
          'through the proxy of the environment',
        );
      } finally {
        for (const name of ['http_proxy', 'no_proxy'])
          if (before[name] === undefined) delete process.env[name];
          else process.env[name] = before[name];
        await proxy.close();
      }
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
      hub.fail(hubWeights, { dropAfter: 200_000 });
      hub.fail(hubWeights, { dropAfter: 100_000 });
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      const [first, second, third, ...more] = hub.requestsFor(hubWeights).map(({ headers }) => headers);
      expect(first.range).toBeUndefined();
      expect(begin(second.range)).toBeGreaterThan(0);
      expect(begin(third.range)).toBeGreaterThan(begin(second.range));
      expect(more).toEqual([]);
      expect(model.hash).toBe(await wantedHash());
    });

    it('resumes an interrupted download in a second run', async () => {
      hub.fail(hubWeights, { dropAfter: 250_000 });
      const first = storeWith({ retries: 0 }).add(hub.repository, { as: 'sd1.5' });
      await expect(first).rejects.toMatchObject({ code: 'HubUnreachable' });
      expect(await left()).toEqual(['.sd1.5.part']);
      const model = await storeWith().add(hub.repository, { as: 'sd1.5' });
      expect(model.hash).toBe(await wantedHash());
      const [, resumed] = hub.requestsFor(hubWeights).map(({ headers }) => headers);
      expect(begin(resumed.range)).toBeGreaterThan(0);
      expect(await left()).toEqual(['.sd1.5.darkroom-model.json', 'sd1.5']);
    });

    it('starts over in a second run when the repository has changed', async () => {
      hub.fail(hubWeights, { dropAfter: 250_000 });
      const first = storeWith({ retries: 0 }).add(hub.repository, { as: 'sd1.5' });
      await expect(first).rejects.toMatchObject({ code: 'HubUnreachable' });
      const changed = Buffer.from(hub.content(hubWeights));
      changed[changed.length - 1] ^= 1;
      hub.publish(hubWeights, changed);
      await store.add(hub.repository, { as: 'sd1.5' });
      expect(hub.requestsFor(hubWeights).at(-1)!.headers.range).toBeUndefined();
      expect(await readFile(inModels('sd1.5', hubWeights))).toEqual(changed);
    });

    it.each([
      ['sends the whole file where a range was asked for', 2, { ignoreRange: true }],
      ['answers with another range', 3, { status: 206, headers: { 'content-range': 'bytes 0-389831/389832' } }],
      ['answers with a range of another file', 3, { status: 206, headers: { 'content-range': 'bytes 0-9/10' } }],
      ['finds the range impossible', 3, { status: 416 }],
      ['resumes with wrong bytes', 3, { corrupt: true }],
    ])('is not misled by a server that %s', async (_, requests, lie) => {
      hub.fail(hubWeights, { dropAfter: 200_000 });
      hub.fail(hubWeights, lie);
      const model = await store.add(hub.repository, { as: 'sd1.5' });
      const ranges = hub.requestsFor(hubWeights).map(({ headers }) => headers.range);
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
      hub.fail(hubWeights, { stallAfter: 100_000 });
      const model = await storeWith({ idleTimeoutMs: 1_000 }).add(hub.repository, { as: 'sd1.5' });
      // On a busy machine a working connection may be silent for this long, too.
      expect(hub.requestsFor(hubWeights).length).toBeGreaterThan(1);
      expect(model.hash).toBe(await wantedHash());
    });

    it('rejects a file that stays corrupt and installs nothing', async () => {
      hub.fail(hubWeights, { corrupt: true }, 100);
      await expect(store.add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'CorruptFile',
        message: `${hubWeights} of ${hub.repository} arrived 2 times with the wrong checksum.`,
      });
      expect(hub.requestsFor(hubWeights)).toHaveLength(2);
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
      hub.fail(hubWeights, { status: 503 }, 2);
      hub.fail('model_index.json', { status: 500 });
      expect((await store.add(hub.repository, { as: 'sd1.5' })).hash).toBe(await wantedHash());
      expect(hub.requestsFor('listing')).toHaveLength(2);
      expect(hub.requestsFor(hubWeights)).toHaveLength(3);
    });

    it('asks the hub again when the signed address of its storage has expired', async () => {
      hub.fail(hubWeights, { status: 403 });
      expect((await store.add(hub.repository, { as: 'sd1.5' })).hash).toBe(await wantedHash());
    });

    it('gives up after the last retry, and keeps what was downloaded', async () => {
      hub.fail(hubWeights, { status: 503 }, 100);
      await expect(storeWith({ retries: 2 }).add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'HubUnreachable',
        message: expect.stringMatching(
          /^unet\/diffusion_pytorch_model\.fp16\.safetensors of someone\/tiny could not be downloaded: .* answers 503\.$/,
        ) as string,
      });
      expect(hub.requestsFor(hubWeights)).toHaveLength(3);
      expect(await left()).toEqual(['.sd1.5.part']);
    });

    it.each([
      ['a/b', `, and there is no folder ${resolve('a/b')}.`],
      ['a/b@main', '.'],
      ['https://hub.example/a/b', '.'],
    ])(
      'says which host cannot be reached for %s, and that no folder has that name if it could',
      async (source, end) => {
        const gone = await HubServer.start();
        const { url } = gone;
        await gone.close();
        await expect(storeWith({ endpoint: url, retries: 1 }).add(source, { as: 'x' })).rejects.toMatchObject({
          code: 'HubUnreachable',
          message: `a/b@main could not be downloaded: ${new URL(url).host} cannot be reached (ECONNREFUSED)${end}`,
        });
      },
    );

    it('checks before the download that the disk also has room for what is made of it', async () => {
      const { bavail, bsize } = await statfs(folder);
      const weights = 'unet/diffusion_pytorch_model.fp16-00001-of-00002.safetensors';
      hub.publish(weights, 'tiny', Math.floor(bavail * bsize * 0.8));
      await expect(store.add(hub.repository, { as: 'x', precision: 'int8' })).rejects.toMatchObject({
        code: 'NoSpace',
      });
      expect(hub.requests.map(({ file }) => file)).toEqual(['listing']);
    });

    it.each([
      [{ license: 'apache-2.0' }, 'apache-2.0'],
      [{ license: 'other', license_name: 'flux-non-commercial-license' }, 'flux-non-commercial-license'],
      [{ license: ['mit'] }, undefined],
      [{ license: 'a\u001b[31m' }, undefined],
    ])('tells the licence that the page of a repository states: %j', async (cardData, licence) => {
      hub.cardData = cardData;
      expect((await store.add(hub.repository, { as: 'x' })).licence).toBe(licence);
    });

    it('checks the disk space first', async () => {
      hub.publish('unet/diffusion_pytorch_model.fp16-00001-of-00002.safetensors', 'tiny', 10 ** 15);
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

    it('takes weights in half precision, else those that there are, for each part', async () => {
      const unet = hub.content(hubWeights);
      hub.remove(hubWeights);
      hub.publish('unet/diffusion_pytorch_model.safetensors', unet);
      await store.add(hub.repository, { as: 'sdxl' });
      expect(await readdir(inModels('sdxl/unet'))).toEqual(['config.json', 'diffusion_pytorch_model.safetensors']);
      expect(await readdir(inModels('sdxl/vae'))).toEqual(['config.json', 'diffusion_pytorch_model.fp16.safetensors']);
    });

    it('takes the one checkpoint that is named, by its path or by the address of its page', async () => {
      const checkpoint = await readFile(join(await familyIn(folder, 'sd15-file'), 'model.safetensors'));
      hub.publish('checkpoints/my model.safetensors', checkpoint);
      const path = `${hub.repository}/checkpoints/my model.safetensors`;
      const source = `${path}@${hub.commit}`;
      const model = await store.add(path, { as: 'one' });
      expect(model).toMatchObject({ family: 'sd1', source, bytes: checkpoint.length });
      const page = `${hub.url}/${hub.repository}/blob/main/checkpoints/my%20model.safetensors`;
      expect(await store.add(page, { as: 'two' })).toMatchObject({ hash: model.hash, source });
      await expect(store.add(`${hub.repository}/other.safetensors`, { as: 'three' })).rejects.toThrow(
        `${hub.repository}@main has no other.safetensors.`,
      );
    });

    it('is not confused by what an interrupted download of another repository has left', async () => {
      hub.fail(hubWeights, { dropAfter: 250_000 });
      await expect(storeWith({ retries: 0 }).add(hub.repository, { as: 'x' })).rejects.toThrow();
      const checkpoint = await readFile(join(await familyIn(folder, 'sd15-file'), 'model.safetensors'));
      hub.publish('one.safetensors', checkpoint);
      await store.add(`${hub.repository}/one.safetensors`, { as: 'x' });
      expect(await readdir(inModels('x'))).toEqual(['model.safetensors']);
    });

    it('refuses another kind of model before its weights are downloaded', async () => {
      hub.publish('model_index.json', '{"_class_name": "FluxPipeline"}');
      await expect(store.add(hub.repository, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: `${hub.repository}@main is no model to draw with: model_index.json describes a FluxPipeline, which is none of FLUX.2 [klein], Z-Image, ERNIE-Image, Stable Diffusion XL, Stable Diffusion 2.x, Stable Diffusion 1.x. ${cures.otherModel}`,
      });
      expect(hub.requests.map(({ file }) => file)).toEqual(['listing', 'model_index.json']);
      expect(await left()).toEqual([]);
    });

    it('refuses a repository whose weights run code, before anything is downloaded', async () => {
      const other = await HubServer.start('someone/pytorch');
      for (const path of ['model_index.json', 'unet/config.json', 'unet/diffusion_pytorch_model.bin'])
        other.publish(path, '{}');
      await expect(storeWith({ endpoint: other.url }).add(other.repository, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: `someone/pytorch@main is no model to draw with: unet/ has its weights in diffusion_pytorch_model.bin, which runs code when it is read. ${cures.safetensors}`,
      });
      expect(other.requests.map(({ file }) => file)).toEqual(['listing']);
      await other.close();
      expect(await left()).toEqual([]);
    });

    it('rejects a complete download with invalid weights, and leaves nothing', async () => {
      hub.publish(hubWeights, 'no weights at all');
      await expect(store.add(hub.repository, { as: 'x' })).rejects.toMatchObject({
        code: 'InvalidModel',
        message: expect.stringContaining(`${hubWeights} cannot be read: `) as string,
      });
      expect(await left()).toEqual([]);
    });

    it('reports bytes that never exceed the total, and the end', async () => {
      const reports: ModelProgress[] = [];
      hub.fail(hubWeights, { dropAfter: 200_000 });
      await store.add(hub.repository, { as: 'sd1.5', onProgress: (progress) => reports.push(progress) });
      const last = reports.at(-1)!;
      expect(last).toMatchObject({ phase: 'download', doneFiles: last.totalFiles, doneBytes: last.totalBytes });
      expect(reports.filter(({ doneBytes, totalBytes }) => doneBytes > totalBytes)).toEqual([]);
    });
  });
});

const begin = (range: string | undefined): number => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]);
