import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, request as httpRequest, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { limits } from '@app/domain';
import { JsonBody } from '../../apps/api/src/defence/json-body';
import { startTestApi, type TestApi, type TestKey } from '../support/api';
import { makeFinetune, type ProblemJson } from '../support/factories';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

const run = promisify(execFile);

/** A process that may not mount a small file system cannot fill one. It is tried where nobody else sees it. */
const mayMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;
const ifMayMount = mayMount ? describe : describe.skip;

describe('connections', () => {
  const api = ofSuite(startTestApi);
  let key: TestKey;
  const { timeoutMs } = JsonBody;

  beforeAll(async () => {
    JsonBody.timeoutMs = 300;
    key = await api.createKey();
  });
  afterAll(async () => {
    JsonBody.timeoutMs = timeoutMs;
  });

  /** Sends the headers of a request, then lets the caller send the body as slowly as allowed. */
  function trickle(head: string): { socket: Socket; answer: () => string; stop: () => void } {
    const socket = connect(Number(new URL(api.baseUrl).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString())).on('error', () => undefined);
    socket.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${key.token}\r\n\r\n`);
    const timer = setInterval(() => socket.writable && socket.write(' '), 50);
    return { socket, answer: () => answer, stop: () => clearInterval(timer) };
  }

  it('have no time limit for a whole request, and a short one for its headers', () => {
    const server = api.app.getHttpServer() as Server & { connectionsCheckingInterval: number };
    expect([server.requestTimeout, server.headersTimeout, server.connectionsCheckingInterval]).toEqual([
      0, 15_000, 5_000,
    ]);
  });

  it('stay open for longer than a balancer keeps them, and say so', async () => {
    const { headers } = await api.request('GET', '/health/live');
    const [, seconds] = /^timeout=(\d+)$/.exec(headers.get('keep-alive') ?? '') ?? [];
    // nginx, ALB and their kin: 60 s.
    expect(Number(seconds)).toBeGreaterThan(60);
  });

  it.each([
    ['JSON', '/v1/sd/text-to-image', 'application/json'],
    ['a form before its first part', '/v1/images/edits', 'multipart/form-data; boundary=x'],
    ['a picture', '/v1/uploads', 'image/png'],
  ])('end with 400 when the body comes a byte at a time: %s', async (_, path, type) => {
    const send = async (chunks: number): Promise<string> => {
      const socket = connect(Number(new URL(api.baseUrl).port), '127.0.0.1');
      let answer = '';
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString())).on('error', () => undefined);
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.token}\r\nContent-Type: ${type}`;
      socket.write(`${head}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(chunks)}`);
      if (chunks < 4_096) socket.write('0\r\n\r\n');
      await once(socket, 'close');
      return answer;
    };
    expect(await send(5_000)).toContain('in too many small chunks');
    expect(await send(4_000)).toMatch(/^HTTP\/1.1 4\d\d (?![^]*small chunks)/);
  });

  it('end with 413 when a form has more before its first part than a JSON body may', async () => {
    const raw = new Uint8Array(limits.bodyBytes + 1).fill(32);
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const reply = await api.request<{ error: { code: string } }>('POST', '/v1/images/edits', { key, raw, headers });
    expect([reply.status, reply.body.error.code]).toEqual([413, 'BodyTooLarge']);
  });

  it.each([
    ['http://[::1', 400],
    ['http://x:99999/health/live', 400],
    ['ftp://x/health/live', 400],
    ['http://elsewhere:1/health/live', 200],
    ['/v1/models#[', 401],
    ['*', 404],
    ['//[::1', 404],
  ])('answer a request for %s with %i, and an error with a problem', async (target, status) => {
    const socket = connect(Number(new URL(api.baseUrl).port), '127.0.0.1');
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    const answer = await text(socket);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*application/${status < 400 ? '' : 'problem\\+'}json`));
  });

  it('answer a slow JSON body with 408, and close', async () => {
    const { socket, answer, stop } = trickle(
      'POST /v1/sd/text-to-image HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000',
    );
    await once(socket, 'end');
    expect(answer()).toMatch(
      /^HTTP\/1.1 408 Request Timeout\r\n[^]*application\/problem\+json[^]*"code":"BodyTimeout"/,
    );
    await once(socket, 'close');
    stop();
  });

  it('are not kept open by a body that nobody reads', async () => {
    const { socket, answer, stop } = trickle('GET /health/live HTTP/1.1\r\nContent-Length: 1000');
    await once(socket, 'close');
    stop();
    expect(answer()).toMatch(/^HTTP\/1.1 200 OK/);
  });

  it('keep nothing of a request that has been answered while they stay open', async () => {
    const agent = new Agent({ keepAlive: true });
    let last: WeakRef<IncomingMessage> | undefined;
    const server = api.app.getHttpServer();
    const { keepAliveTimeout } = server;
    server.keepAliveTimeout = 600_000;
    server.once('request', (request) => (last = new WeakRef(request)));
    const sending = httpRequest(`${api.baseUrl}/v1/sd/text-to-image`, {
      method: 'POST',
      agent,
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
    });
    sending.end('[]');
    const [answer] = (await once(sending, 'response')) as [IncomingMessage];
    await text(answer);
    expect(answer.statusCode).toBe(400);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await until(async () => {
      collect();
      return last && last.deref() === undefined;
    }, 'the request is collected');
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
    agent.destroy();
    server.keepAliveTimeout = keepAliveTimeout;
  });

  it('deliver the response to a sender whose body is too large', async () => {
    const sending = httpRequest(`${api.baseUrl}/v1/sd/text-to-image`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key.token}`,
        'content-type': 'application/json',
        'content-length': String(30 * 2 ** 20),
      },
    });
    sending.on('error', () => undefined);
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
    for (let n = 0; n < 30; n++) sending.write(Buffer.alloc(2 ** 20, 32));
    const [reply] = await answered;
    expect([reply.statusCode, (JSON.parse(await text(reply)) as ProblemJson).code]).toEqual([413, 'BodyTooLarge']);
    sending.destroy();
  });

  it('deliver it before the end of a body whose length was not said', async () => {
    const sending = httpRequest(`${api.baseUrl}/v1/sd/text-to-image`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
    });
    sending.on('error', () => undefined);
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
    sending.write(Buffer.alloc(limits.bodyBytes + 1, 32));
    const [reply] = await answered;
    expect([reply.statusCode, (JSON.parse(await text(reply)) as ProblemJson).code]).toEqual([413, 'BodyTooLarge']);
    sending.destroy();
  });

  it('take in the rest of a body after an answer that closes them', async () => {
    const bytes = 8 * 2 ** 20;
    const port = Number(new URL(api.baseUrl).port);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const errors: Error[] = [];
    socket.on('error', (error) => errors.push(error)).resume();
    socket.write(
      `POST /v1/sd/text-to-image HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.token}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
    );
    await once(socket, 'end');
    socket.end(Buffer.alloc(bytes, 32));
    await once(socket, 'close');
    expect(errors).toEqual([]);
  });
});

ifMayMount('a disk that fills up', () => {
  const diskMb = 64;
  let dataDir: string;
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'darkroom-disk-'));
    await run('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m`, 'tmpfs', dataDir]);
    api = await startTestApi({ DATA_DIR: dataDir });
    key = await api.createKey();
  });
  afterAll(async () => {
    await api.close();
    await run('umount', ['-l', dataDir]);
    await rm(dataDir, { recursive: true, force: true });
  });

  it('rejects uploads into its reserve, serves everything else, and reports when it is full', async () => {
    const ballast = join(dataDir, 'ballast');
    const fillTo = (megabytes: number): Promise<void> => writeFile(ballast, Buffer.alloc(megabytes * 2 ** 20));
    const { id } = await makeFinetune(api, key);
    const path = `/v1/finetunes/${id}/weights`;
    const headers = { 'content-type': 'application/octet-stream', authorization: `Bearer ${key.token}` };
    const raw = await readFile(join('test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));
    const draw = () => api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star' } });
    const ready = async (): Promise<number> => (await api.request('GET', '/health/ready')).status;

    expect((await api.request('PUT', path, { key, raw, headers })).status).toBe(200);
    const sending = httpRequest(`${api.baseUrl}${path}`, { method: 'PUT', headers });
    sending.on('error', () => undefined);
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
    sending.write(Buffer.alloc(2 ** 20));
    await until(async () => (await readdir(join(dataDir, 'uploads'))).length === 1, 'the upload has begun');
    await fillTo(diskMb - 14);
    for (let n = 0; n < 8; n++) sending.write(Buffer.alloc(2 ** 20));
    const [reply] = await answered;
    expect([reply.statusCode, reply.headers['retry-after']]).toEqual([503, '60']);
    sending.destroy();
    await until(async () => (await readdir(join(dataDir, 'uploads'))).length === 0, 'the upload is removed');

    const refused = await api.request<ProblemJson>('PUT', path, { key, raw, headers });
    expect([refused.status, refused.body.detail]).toEqual([503, 'There is no room for the file at the moment.']);
    expect([(await draw()).status, await ready()]).toEqual([201, 200]);
    await fillTo(diskMb - 1);
    expect(await ready()).toBe(503);
    await rm(ballast);
    expect([(await api.request('PUT', path, { key, raw, headers })).status, await ready()]).toEqual([200, 200]);
  });
});
