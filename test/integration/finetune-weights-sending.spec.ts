import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Finetune } from '@app/domain';
import { OpenRequests } from '../../apps/api/src/defence/open-requests';
import { itOnce } from '../support/back-ends';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { makeFinetune, storedKeys } from '../support/factories';
import { until } from '../support/until';

const octets = { 'content-type': 'application/octet-stream' };

describe('weights of a Fine-Tune on their way', () => {
  let api: TestApi;
  let key: TestKey;
  let id: string;
  let weights: Buffer;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    weights = await readFile(join('test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));
  });
  beforeEach(async () => {
    ({ id } = await makeFinetune(api, key));
  });
  afterAll(() => api.close());

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
    const { status, body, headers } = await put();
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

  itOnce('aborts the uploads of a revoked key', async () => {
    const sending = open({ 'content-length': '100000' });
    sending.write(Buffer.alloc(1000));
    await until(async () => (await uploads()).length === 1, 'the upload has begun');
    api.app.get(OpenRequests).endAll(key.id);
    const [reply] = (await once(sending, 'response')) as [IncomingMessage];
    expect(reply.statusCode).toBe(401);
    sending.on('error', () => undefined).destroy();
    await until(async () => (await uploads()).length === 0, 'the upload is removed');
  });

  itOnce('reads no body of a caller without a key', async () => {
    const sending = httpRequest(`${api.baseUrl}/v1/finetunes/${id}/weights`, { method: 'PUT' });
    sending.write('x');
    const [reply] = (await once(sending, 'response')) as [IncomingMessage];
    expect(reply.statusCode).toBe(401);
    sending.destroy();
  });
});
