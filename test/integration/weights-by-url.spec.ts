import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Task } from '@app/domain';
import { DnsLookUps, RemoteError, RemoteFiles } from '@app/remote';
import { Tasks } from '@app/tasks';
import { startTestApi, type TestKey } from '../support/api';
import { openEvents } from '../support/event-source';
import { type FinetuneJson, makeFinetune, type ProblemJson, storedKeys } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { startPictureServer } from '../support/picture-server';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';

const lora = join('test', 'golden', 'models', 'lora', 'zwx-robot-kohya.safetensors');
const file = readFileSync(lora);
const sha256 = createHash('sha256').update(file).digest('hex');

type Record = FinetuneJson & { training: unknown; prompts: string[] };

describe('Weights by their URL', () => {
  const api = ofSuite(() => startTestApi({ PICTURES_ALLOW_PRIVATE: 'on', PUBLIC_URL: 'http://darkroom.example/here' }));
  const key = ofTest(() => api.createKey());
  const startReceiver = receiversOfSuite();
  /** Answers that a test ends. */
  const open: ServerResponse[] = [];
  let failures = 0;
  const redirect = (location: string) => (response: ServerResponse) => void response.writeHead(302, { location }).end();
  const server = ofSuite(() =>
    startPictureServer({
      '/robot': file,
      '/moved': redirect('/moved-again'),
      '/moved-again': redirect('robot'),
      '/around': redirect('/around'),
      '/elsewhere': redirect('file:///etc/passwd'),
      '/text': Buffer.from('<html>Sign in to read this</html>'),
      '/zip': Buffer.from('PK\x03\x04 what torch.save writes'),
      '/gzip': (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(file),
      '/huge': (response) => response.writeHead(200, { 'content-length': 2 ** 31 }).flushHeaders(),
      '/large': (response) => response.writeHead(200, { 'content-length': 3e6 }).flushHeaders(),
      '/endless': (response) => {
        const chunk = Buffer.alloc(2 ** 16);
        const more = (): void => void response.write(chunk, (error) => error ?? setImmediate(more));
        more();
      },
      '/cut': (response) => {
        response.writeHead(200, { 'content-length': file.length });
        response.write(file.subarray(0, 5_000), () => response.destroy());
      },
      '/fails-once': (response) => (failures++ === 0 ? response.writeHead(503).end() : response.end(file)),
      '/silent': (response) => {
        response.writeHead(200, { 'content-length': file.length });
        response.write(file.subarray(0, 100));
        open.push(response);
      },
    }),
  );
  beforeEach(() => {
    server.asked.length = 0;
    open.length = 0;
  });
  afterEach(() => {
    for (const response of open) response.destroy();
  });

  const post = (body: object, owner: TestKey = key) =>
    api.request<Record & ProblemJson>('POST', '/v1/finetunes', { key: owner, body: { name: 'robot', ...body } });
  const fetched = async (path: string, body: object = {}, owner: TestKey = key) => {
    const reply = await post({ weights_url: `${server.url}${path}`, ...body }, owner);
    expect([reply.status, reply.body.detail]).toEqual([201, undefined]);
    return reply.body;
  };
  const find = async (id: string, owner: TestKey = key) =>
    (await api.request<Record>('GET', `/v1/finetunes/${id}`, { key: owner })).body;
  const ended = (id: string, owner: TestKey = key) =>
    until(async () => {
      const found = await find(id, owner);
      return found.status !== 'queued' && found;
    }, 'the weights are there, or not to be had');
  const taskOf = (id: string) => api.dataSource.manager.findOneByOrFail(Task, { id });
  const filesOf = async (id: string) => (await storedKeys(api)).filter((stored) => stored.includes(id));
  const isAsked = (path: string, times = 1) =>
    until(async () => server.asked.filter((asked) => asked === path).length >= times, `${path} is asked for`);

  it('are fetched behind redirects, checked, and drawn with', async () => {
    const { received, url: webhook } = await startReceiver();
    const prompts = [{ prompt: 'a robot' }];
    const made = await fetched('/moved', { weights_sha256: sha256.toUpperCase(), webhook, prompts, user: 'ann' });
    expect(made).toMatchObject({
      user: 'ann',
      status: 'queued',
      weights: null,
      training: null,
      note: null,
      error_message: null,
    });
    const ready = await ended(made.id);
    const base = expect.stringMatching(/^shapes@\w{12}$/) as string;
    const weights = { kind: 'lora', sha256, bytes: file.length, scale: 1, base, unmatched: 0 };
    expect(ready).toEqual({ ...made, status: 'ready', weights });
    expect(server.asked).toEqual(['/moved', '/moved-again', '/robot']);
    const [drawing] = await api.dataSource.query<object[]>(
      'SELECT queue, status, weights_hash FROM tasks JOIN drawings USING (id) WHERE id = $1',
      [made.prompts[0]],
    );
    expect(drawing).toEqual({ queue: 'drawing', status: 'queued', weights_hash: sha256 });
    await until(async () => received.length > 0, 'the webhook is called');
    expect(JSON.parse(received[0].body)).toEqual(ready);
  });

  it('tell their event stream the record, and nothing of steps', async () => {
    const made = await fetched('/robot');
    const stream = await openEvents(`${api.baseUrl}/v1/finetunes/${made.id}/events`, key.token);
    let told = await stream.next();
    while (told?.event === 'queued') told = await stream.next();
    expect(told).toMatchObject({ event: 'terminated', data: { ...made, status: 'ready', weights: { sha256 } } });
    expect(await stream.next()).toBeUndefined();
  });

  it('cost their key no compute, and no other its turn', async () => {
    const { id } = await fetched('/robot');
    await ended(id);
    expect(await taskOf(id)).toMatchObject({ status: 'succeeded', cost: 0, chargedSeconds: 0 });
    expect((await api.request('GET', '/v1/usage', { key })).body).toEqual([]);
  });

  it.each([
    ['that are not there', '/none', 'The file at `weights_url` could not be fetched: its server answered 404.'],
    ['that are a page', '/text', 'This is not a safetensors file.'],
    ['that are a pickle', '/zip', /^This is not a safetensors file: it is a zip archive/],
    ['that come compressed', '/gzip', /came compressed/],
    ['behind redirects without end', '/around', 'The file at `weights_url` is behind more than 5 redirects.'],
    ['behind a redirect to another scheme', '/elsewhere', /does not begin with http/],
    ['of two gigabytes', '/huge', 'The file at `weights_url` has more than 1074 MB.'],
  ])('%s fail with a sentence, and are asked for no more', async (_, path, sentence) => {
    const { id } = await fetched(path, { prompts: [{ prompt: 'a robot' }] });
    const failed = await ended(id);
    expect(failed).toMatchObject({ status: 'failed', weights: null, training: null });
    expect(failed.error_message).toEqual(typeof sentence === 'string' ? sentence : expect.stringMatching(sentence));
    expect(JSON.stringify(failed)).not.toMatch(/secret words|Sign in/);
    const prompt = await api.request('GET', `/v1/finetunes/${id}/prompts/${failed.prompts[0]}`, { key });
    const why = `Fetching the weights of the Fine-Tune failed: ${failed.error_message}`;
    expect(prompt.body).toMatchObject({ error_message: why });
    const next = await api.request('POST', `/v1/finetunes/${id}/prompts`, { key, body: [{ prompt: 'a robot' }] });
    expect([next.status, next.body.code]).toEqual([422, 'FineTuneNotTrained']);
    expect([await filesOf(id), (await taskOf(id)).failures]).toEqual([[], 0]);
  });

  it('with another SHA-256 than the one they are pinned to are not taken', async () => {
    const { id } = await fetched('/robot', { weights_sha256: 'a'.repeat(64) });
    const { error_message: sentence } = await ended(id);
    expect([sentence, await filesOf(id)]).toEqual([
      'The file at `weights_url` has not the SHA-256 in `weights_sha256`.',
      [],
    ]);
  });

  it.each([
    ['says so', '/large'],
    ['does not say how many come', '/endless'],
  ])('that have more bytes than their key may store fail, also when their server %s', async (_, path) => {
    const small = await api.createKey({ maxStorageMb: 1 });
    const { id } = await fetched(path, {}, small);
    const failed = await ended(id, small);
    expect([failed.status, failed.error_message]).toEqual(['failed', expect.stringMatching(/^This API key (may|has)/)]);
    expect(await filesOf(id)).toEqual([]);
  });

  it('are asked for again when their server fails for a moment', async () => {
    failures = 0;
    const { id } = await fetched('/fails-once');
    expect(await ended(id)).toMatchObject({ status: 'ready', weights: { sha256 } });
    expect(server.asked).toEqual(['/fails-once', '/fails-once']);
  });

  it('that break off are asked for again, and are not taken as they are', async () => {
    const { id } = await fetched('/cut');
    await isAsked('/cut', 2);
    expect(await find(id)).toMatchObject({ status: 'queued', weights: null });
    await api.request('DELETE', `/v1/finetunes/${id}`, { key });
  });

  it('of a silent server make only their own key wait', async () => {
    const stuck = await fetched('/silent');
    await isAsked('/silent');
    const behind = await fetched('/robot');
    const other = await api.createKey();
    const { id } = await fetched('/moved', {}, other);
    expect(await ended(id, other)).toMatchObject({ status: 'ready' });
    expect([(await find(stuck.id)).status, (await find(behind.id)).status]).toEqual(['queued', 'queued']);
    expect((await taskOf(behind.id)).attempt).toBe(0);
    expect((await api.request('GET', `/v1/finetunes/${stuck.id}`, { key: other })).status).toBe(404);
    const { body } = await api.request<ProblemJson>('PUT', `/v1/finetunes/${stuck.id}/weights`, { key, raw: file });
    expect(body.code).toBe('TrainingUnderWay');
    const closed = new Promise((resolve) => open[0].once('close', resolve));
    const canceled = await api.request('POST', `/v1/finetunes/${stuck.id}/cancel`, { key });
    expect([canceled.status, canceled.body.status]).toEqual([201, 'canceled']);
    await closed;
    expect(await ended(behind.id)).toMatchObject({ status: 'ready' });
    const again = await api.request<ProblemJson>('POST', `/v1/finetunes/${behind.id}/cancel`, { key });
    expect([again.status, again.body.code]).toEqual([409, 'TrainingTerminated']);
  });

  it('of a deleted Fine-Tune leave nothing', async () => {
    const { id } = await fetched('/silent');
    await isAsked('/silent');
    const closed = new Promise((resolve) => open[0].once('close', resolve));
    await api.request('DELETE', `/v1/finetunes/${id}`, { key });
    await closed;
    expect(await filesOf(id)).toEqual([]);
    await until(async () => (await api.dataSource.query<object[]>('SELECT FROM uploads')).length === 0, 'it is over');
  });

  it('go on elsewhere when the process that fetches them is silent', async () => {
    const { id } = await fetched('/silent');
    await isAsked('/silent');
    await api.dataSource.query(`UPDATE tasks SET heartbeat_at = now() - interval '1 hour' WHERE id = $1`, [id]);
    const tasks = api.app.get(Tasks);
    for (const silent of await tasks.silent()) await tasks.endSilent(silent, undefined);
    await isAsked('/silent', 2);
    open[1].end(file.subarray(100));
    expect(await ended(id)).toMatchObject({ status: 'ready', weights: { sha256 } });
    expect([(await taskOf(id)).attempt, (await filesOf(id)).length]).toEqual([2, 1]);
  });

  it('of a Fine-Tune of the key are copied, and of no other', async () => {
    const { id } = await fetched('/robot');
    await ended(id);
    const url = `${api.config.publicUrl}/v1/finetunes/${id}/weights`;
    const copy = await post({ weights_url: url });
    expect(await ended(copy.body.id)).toMatchObject({ status: 'ready', weights: { sha256 } });
    const other = await api.createKey();
    const stolen = await post({ weights_url: url }, other);
    expect(await ended(stolen.body.id, other)).toMatchObject({
      status: 'failed',
      error_message: expect.stringContaining('no Fine-Tune of yours has weights at this URL') as string,
    });
  });

  it.each([
    ['beside pictures', { images_url: ['https://a.example/1.png'] }, 400, 'ValidationFailed', '/weights_url'],
    ['with captions', { captions: ['a robot'] }, 422, 'FineTuneImagesMissing', '/images_url'],
    ['with a bad SHA-256', { weights_sha256: 'abc' }, 400, 'ValidationFailed', '/weights_sha256'],
    ['that are no URL', { weights_url: 'robot.safetensors' }, 400, 'ValidationFailed', '/weights_url'],
    [
      'that have only a SHA-256',
      { weights_url: null, weights_sha256: sha256 },
      400,
      'ValidationFailed',
      '/weights_url',
    ],
    ['for a model that is not there', { model: 'none' }, 422, 'ModelNotInstalled', '/model'],
  ])('%s are refused at once', async (_, body, status, code, pointer) => {
    const reply = await post({ weights_url: `${server.url}/robot`, ...body });
    expect([reply.status, reply.body.code, reply.body.errors?.[0].pointer]).toEqual([status, code, pointer]);
    expect(server.asked).toEqual([]);
  });

  it('at another URL of this service are refused at once', async () => {
    for (const path of ['/images/abc.png', '/v1/finetunes', '/metrics', '/../v1/finetunes']) {
      const { status, body } = await post({ weights_url: `${api.config.publicUrl}${path}` });
      expect([status, body.code, body.errors?.[0].pointer]).toEqual([422, 'WeightsAddressRefused', '/weights_url']);
    }
  });

  it('of a sandbox key are fetched and checked like those of any other', async () => {
    const sandbox = await api.createKey({ sandbox: true });
    const { id } = await fetched('/robot', {}, sandbox);
    expect(await ended(id, sandbox)).toMatchObject({ status: 'ready', weights: { sha256 } });
  });

  it('replaced by a process of an earlier version have no count of unmatched tensors', async () => {
    const { id } = await makeFinetune(api, key);
    await api.request('PUT', `/v1/finetunes/${id}/weights`, { key, raw: file });
    expect((await find(id)).weights).toMatchObject({ unmatched: 0 });
    await api.dataSource.query(`UPDATE finetunes SET weights_key = 'other' WHERE id = $1`, [id]);
    expect((await find(id)).weights).toMatchObject({ unmatched: null });
  });
});

describe('Weights at private addresses', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());
  const server = ofSuite(() => startPictureServer({ '/robot': file }));
  const limits = { maxBytes: 1e6, timeMs: 2_000, maxRedirects: 3, perOwner: 4, headers: {} };

  it.each(['http://127.0.0.1/a', 'http://10.1.2.3/a', 'http://[::1]/a', 'http://2130706433/a', 'http://localhost:1/a'])(
    'such as %s are refused at once',
    async (url) => {
      const body = { name: 'robot', weights_url: url };
      const reply = await api.request<ProblemJson>('POST', '/v1/finetunes', { key, body });
      expect([reply.status, reply.body.code]).toEqual([422, 'WeightsAddressRefused']);
    },
  );

  it('are never asked, whatever their name was before it was resolved', async () => {
    const lookUps = new DnsLookUps(async () => [{ address: '127.0.0.1', family: 4 }]);
    const url = `http://rebind.test:${server.url.split(':')[2]}/robot`;
    const { signal } = new AbortController();
    await expect(new RemoteFiles(false, limits, lookUps).open('a', url, signal)).rejects.toThrow(RemoteError);
    expect(server.asked).toEqual([]);
  });
});
