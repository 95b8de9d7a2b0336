import { readFile, readdir } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { Finetune } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { UploadsService } from '../../apps/api/src/files/uploads.service';
import { WeightsInspector } from '../../apps/api/src/finetunes/weights-inspector';
import { WeightsSweeper } from '../../apps/api/src/finetunes/weights.sweeper';
import { itOnce } from '../support/back-ends';
import { startTestApi } from '../support/api';
import { type FinetuneJson, makeFinetune, type ProblemJson, storedKeys } from '../support/factories';
import { encodeSafetensors } from '../support/safetensors';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

const loraFolder = join('test', 'golden', 'models', 'lora');
const octets = { 'content-type': 'application/octet-stream' };

const api = ofSuite(startTestApi);

describe('weights of a Fine-Tune', () => {
  const key = ofSuite(() => api.createKey());
  let id: string;
  let diffusers: Buffer;
  let kohya: Buffer;

  beforeAll(async () => {
    diffusers = await readFile(join(loraFolder, 'zwx-robot-diffusers.safetensors'));
    kohya = await readFile(join(loraFolder, 'zwx-robot-kohya.safetensors'));
  });
  beforeEach(async () => {
    ({ id } = await makeFinetune(api, key));
  });
  const put = (raw: Uint8Array | string, query = '', headers: Record<string, string> = octets) =>
    api.request<FinetuneJson & ProblemJson>('PUT', `/v1/finetunes/${id}/weights${query}`, { key, raw, headers });
  const row = () => api.dataSource.manager.findOneByOrFail(Finetune, { id });
  const ownFiles = async () => (await storedKeys(api)).filter((stored) => stored.startsWith(`weights/${id}/`));
  const uploads = () => readdir(join(api.config.dataDir, 'uploads')).catch(() => []);
  const expectUntouched = async () => {
    expect(await row()).toMatchObject({ status: 'registered', weightsKind: null, weightsHash: null, weightsKey: null });
    expect([await ownFiles(), await uploads()]).toEqual([[], []]);
  };

  describe('accepted', () => {
    it.each([
      // Its file has no alpha.
      [
        'diffusers',
        'application/octet-stream',
        () => diffusers,
        expect.stringContaining('alpha is taken to be') as string,
      ],
      ['kohya', 'application/x-www-form-urlencoded', () => kohya, null],
    ])('accepts a LoRA with names of %s sent as %s', async (_, type, file, note) => {
      const before = await api.request<FinetuneJson>('GET', `/v1/finetunes/${id}`, { key });
      const { status, body } = await put(file(), '', { 'content-type': type });
      const sha256 = createHash('sha256').update(file()).digest('hex');
      const weights = {
        kind: 'lora',
        sha256,
        bytes: file().length,
        scale: 1,
        base: expect.stringMatching(/^shapes@\w{12}$/) as string,
        unmatched: 0,
      };
      expect([status, body]).toEqual([200, { ...before.body, status: 'ready', note, weights }]);
      expect((await api.request('GET', `/v1/finetunes/${id}`, { key })).body).toEqual(body);
      const { weightsKind, weightsHash, weightsKey, weightsScale } = await row();
      expect([weightsKind, weightsHash, weightsScale]).toEqual(['lora', sha256, 1]);
      expect(await ownFiles()).toEqual([weightsKey]);
      const stored = await api.app.get<ImageStorage>(IMAGE_STORAGE).localPath(weightsKey!);
      expect((await readFile(stored)).equals(file())).toBe(true);
      expect(await uploads()).toEqual([]);
    });

    itOnce('accepts a textual inversion embedding, and refuses to scale it', async () => {
      const width = 128;
      const embedding = encodeSafetensors({
        zwx: { shape: [2, width], values: new Float32Array(2 * width).fill(0.1) },
      });
      const problemOf = async (reply: Promise<{ status: number; body: object }>) => {
        const { status, body } = await reply;
        const { code, errors } = body as ProblemJson;
        return [status, code, errors?.[0].parameter ?? errors?.[0].pointer];
      };
      expect(await problemOf(put(embedding, '?scale=0.75'))).toEqual([422, 'ScaleUnsupported', 'scale']);
      expect(await row()).toMatchObject({ weightsKind: null });
      const { status, body } = await put(embedding);
      expect([status, body.status]).toEqual([200, 'ready']);
      expect(await row()).toMatchObject({ weightsKind: 'textual_inversion', weightsScale: 1 });
      const patch = api.request('PATCH', `/v1/finetunes/${id}`, { key, body: { scale: 2 } });
      expect(await problemOf(patch)).toEqual([422, 'ScaleUnsupported', '/scale']);
    });

    it('replaces the previous weights and removes their file', async () => {
      await put(diffusers, '?scale=2');
      const [first] = await ownFiles();
      await put(kohya);
      const { weightsKey, weightsScale } = await row();
      expect(weightsKey).not.toBe(first);
      expect(weightsScale).toBe(1);
      expect(await ownFiles()).toEqual([weightsKey]);
    });

    it('keeps only the row’s file when several arrive at once', async () => {
      const replies = await Promise.all([put(diffusers), put(kohya), put(diffusers)]);
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(await ownFiles()).toEqual([(await row()).weightsKey]);
    });

    it('removes the files with the Fine-Tune, even if it is deleted while they arrive', async () => {
      await put(diffusers);
      const [late] = await Promise.all([put(kohya), api.request('DELETE', `/v1/finetunes/${id}`, { key })]);
      expect([200, 404]).toContain(late.status);
      expect(await ownFiles()).toEqual([]);
    });
  });

  describe('refused', () => {
    const lora = (out: number, input: number) => {
      const layer = 'unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q';
      return encodeSafetensors({
        [`${layer}.lora_A.weight`]: { shape: [2, input], values: new Float32Array(2 * input) },
        [`${layer}.lora_B.weight`]: { shape: [out, 2], values: new Float32Array(2 * out) },
      });
    };
    itOnce.each<[what: string, file: () => string | Buffer, code: string, detail?: RegExp]>([
      ['garbage', () => 'no weights at all', 'WeightsMalformed', /not a safetensors file/],
      ['a zip archive', () => 'PK\u0003\u0004 and so on', 'WeightsMalformed', /zip archive/],
      ['a picture', () => Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'WeightsMalformed', /PNG picture/],
      ['a few bytes', () => '{}', 'WeightsMalformed'],
      ['a file that ends too early', () => diffusers.subarray(0, diffusers.length - 1000), 'WeightsMalformed'],
      ['a LoRA for another base', () => lora(320, 320), 'WeightsDoNotFitModel'],
      [
        'an embedding for another base',
        () => encodeSafetensors({ x: { shape: [1, 768], values: new Float32Array(768) } }),
        'WeightsDoNotFitModel',
      ],
    ])('rejects %s with 422 in plain words', async (_, file, code, detail = /./) => {
      const { status, body } = await put(file());
      expect([status, body.code]).toEqual([422, code]);
      expect(body.detail).toMatch(detail);
      expect(body.detail).not.toMatch(/\/tmp|uploads|\n/);
      await expectUntouched();
    });

    itOnce('keeps the previous weights', async () => {
      await put(diffusers);
      const before = await row();
      expect((await put('garbage garbage')).status).toBe(422);
      expect(await row()).toEqual(before);
      expect(await ownFiles()).toEqual([before.weightsKey]);
    });

    itOnce('rejects an empty body', async () => {
      const { status, body } = await put('');
      expect([status, body.code]).toEqual([400, 'MalformedBody']);
      await expectUntouched();
    });

    itOnce.each([
      ['a form', { 'content-type': 'multipart/form-data; boundary=x' }],
      ['what is compressed', { 'content-encoding': 'gzip' }],
    ])('rejects %s', async (_, headers) => {
      const { status, body } = await put('--x', '', headers);
      expect([status, body.code]).toEqual([415, 'UnsupportedMediaType']);
      await expectUntouched();
    });

    itOnce('rejects weights for a model that is no longer installed', async () => {
      await api.dataSource.manager.update(Finetune, { id }, { model: 'gone' });
      const { status, body } = await put(diffusers);
      expect([status, body.code]).toEqual([422, 'ModelNotInstalled']);
      await expectUntouched();
    });

    itOnce('rejects a file that its process cannot handle, and continues with the next', async () => {
      const inspector = api.app.get(WeightsInspector);
      const { work } = inspector as unknown as { work: { run(order: unknown, timeMs?: number): Promise<unknown> } };
      const run = work.run.bind(work);
      work.run = (order) => run(order, 1);
      const { status, body } = await put(diffusers);
      work.run = run;
      expect([status, body.code]).toEqual([422, 'WeightsTooComplex']);
      expect((await put(diffusers)).status).toBe(200);
    });

    itOnce('answers 503 while the process that checks files cannot start, and stores nothing', async () => {
      const inspector = api.app.get(WeightsInspector);
      const { work } = inspector as unknown as {
        work: { options: { file: string }; close(): void; isClosed: boolean };
      };
      const { file } = work.options;
      work.close();
      work.isClosed = false;
      work.options.file = `${file}.none`;
      const { status, body, headers } = await put(diffusers);
      work.options.file = file;
      expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'ServiceUnavailable', '2']);
      expect((await put(diffusers)).status).toBe(200);
    });

    itOnce('inspects at most one file of another key before a key’s only one', async () => {
      const inspector = api.app.get(WeightsInspector);
      const { work } = inspector as unknown as { work: { run(order: { path: string }): Promise<unknown> } };
      const run = work.run.bind(work);
      const order: string[] = [];
      let begin = (): void => undefined;
      const gate = new Promise<void>((resolve) => (begin = resolve));
      work.run = async ({ path }) => {
        order.push(path);
        await gate;
        return { outcome: 'accepted', kind: 'lora' };
      };
      const many = ['a1', 'a2', 'a3'].map((path) => inspector.inspect('a', path, ''));
      await new Promise(setImmediate);
      const single = inspector.inspect('b', 'b1', '');
      begin();
      await Promise.all([...many, single]);
      work.run = run;
      expect(order).toEqual(['a1', 'b1', 'a2', 'a3']);
    });
  });

  describe(WeightsSweeper.name, () => {
    it('removes old files without a Fine-Tune, and no others', async () => {
      await put(diffusers);
      const storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
      const [kept] = await ownFiles();
      const [stray, young] = [`weights/${id}/stray.safetensors`, `weights/${id}/young.safetensors`];
      for (const name of [stray, young]) await storage.write(name, Buffer.from('x'));
      const old = new Date(Date.now() - 7_200_000);
      for (const name of [kept, stray]) await api.backEnds.storage.age(name, old);
      expect(await api.app.get(WeightsSweeper).sweep()).toBe(1);
      expect(await ownFiles()).toEqual([kept, young].sort());
    });
  });
});

describe('weights of a Fine-Tune on their way', () => {
  const key = ofSuite(() => api.createKey());
  let id: string;
  let weights: Buffer;

  beforeAll(async () => {
    weights = await readFile(join('test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));
  });
  beforeEach(async () => {
    ({ id } = await makeFinetune(api, key));
  });
  /** Begins to send them; the caller writes the body. */
  const open = (headers: Record<string, string>): ClientRequest =>
    httpRequest(`${api.baseUrl}/v1/finetunes/${id}/weights`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key.token}`, ...octets, ...headers },
    });
  const put = () =>
    api.request<ProblemJson>('PUT', `/v1/finetunes/${id}/weights`, { key, raw: weights, headers: octets });
  const uploads = () => readdir(join(api.config.dataDir, 'uploads')).catch(() => []);
  const expectUntouched = async () => {
    expect(await api.dataSource.manager.findOneByOrFail(Finetune, { id })).toMatchObject({
      status: 'registered',
      weightsKey: null,
    });
    expect((await storedKeys(api)).filter((stored) => stored.startsWith(`weights/${id}/`))).toEqual([]);
    expect(await uploads()).toEqual([]);
  };

  itOnce('answers 413 to a body with a too large Content-Length, before it is sent', async () => {
    const sending = open({ 'content-length': String(2 ** 30 + 1) });
    sending.flushHeaders();
    const [reply] = (await once(sending, 'response')) as [IncomingMessage];
    const problem = JSON.parse(await text(reply)) as ProblemJson;
    expect([reply.statusCode, problem.code]).toEqual([413, 'BodyTooLarge']);
    sending.destroy();
    await expectUntouched();
  });

  it('leaves nothing of an interrupted upload', async () => {
    const sending = open({ 'content-length': '100000' });
    sending.on('error', () => undefined);
    sending.write(Buffer.alloc(50_000));
    await until(async () => (await uploads()).length === 1, 'the upload has begun');
    sending.destroy();
    await until(async () => (await uploads()).length === 0, 'the upload is removed');
    await expectUntouched();
  });

  itOnce('answers a sender that continues after the rejection, over the same connection', async () => {
    const sending = open({ 'content-length': String(2 ** 30 + 1) });
    sending.on('error', () => undefined);
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
    for (let n = 0; n < 50; n++) sending.write(Buffer.alloc(2 ** 20));
    const [reply] = await answered;
    expect([reply.statusCode, reply.headers.connection]).toEqual([413, 'close']);
    expect((JSON.parse(await text(reply)) as ProblemJson).code).toBe('BodyTooLarge');
    sending.destroy();
  });

  itOnce('sends no 100 Continue for a body that it rejects', async () => {
    const heard: string[] = [];
    const refused = open({ 'content-length': String(2 ** 30 + 1), expect: '100-continue' });
    refused.on('continue', () => heard.push('refused'));
    refused.flushHeaders();
    const [{ statusCode }] = (await once(refused, 'response')) as [IncomingMessage];
    refused.destroy();
    const wanted = open({ 'content-length': String(weights.length), expect: '100-continue' });
    wanted.on('continue', () => {
      heard.push('wanted');
      wanted.end(weights);
    });
    wanted.flushHeaders();
    const [reply] = (await once(wanted, 'response')) as [IncomingMessage];
    expect([statusCode, reply.statusCode, heard]).toEqual([413, 200, ['wanted']]);
    reply.resume();
  });

  itOnce('accepts four files of a key at once, and more of another', async () => {
    const all = Array.from({ length: 4 }, () => open({ 'content-length': '100000' }));
    for (const each of all) {
      each.on('error', () => undefined);
      each.write(Buffer.alloc(1000));
    }
    await until(async () => (await uploads()).length === 4, 'the uploads have begun');
    const { longestWaitMs } = UploadsService;
    UploadsService.longestWaitMs = 50;
    const { status, body, headers } = await put();
    UploadsService.longestWaitMs = longestWaitMs;
    expect([status, body.code, headers.get('retry-after')]).toEqual([429, 'TooManyUploads', '10']);
    const other = await api.createKey();
    const theirs = await makeFinetune(api, other);
    const reply = await api.request('PUT', `/v1/finetunes/${theirs.id}/weights`, {
      key: other,
      raw: weights,
      headers: octets,
    });
    expect(reply.status).toBe(200);
    for (const each of all) each.destroy();
    await until(async () => (await put()).status === 200, 'the places are free again');
  });

  itOnce('reads no body of a caller without a key', async () => {
    const sending = httpRequest(`${api.baseUrl}/v1/finetunes/${id}/weights`, { method: 'PUT' });
    sending.write('x');
    const [reply] = (await once(sending, 'response')) as [IncomingMessage];
    expect(reply.statusCode).toBe(401);
    sending.destroy();
  });
});
