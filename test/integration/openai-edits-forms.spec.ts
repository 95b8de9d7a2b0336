import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import sharp from 'sharp';
import { ApiKey, Task, Upload, UploadedPicture } from '@app/domain';
import { RetentionService } from '../../apps/api/src/files/retention.service';
import { uploadProgress } from '../../apps/api/src/http/receive-file';
import { UploadedPicturesService } from '../../apps/api/src/uploads/uploaded-pictures.service';
import { startTestApi } from '../support/api';
import { storedKeys } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { until } from '../support/until';

interface Refusal {
  error: { code: string; message: string; param: string | null };
}

const path = '/v1/images/edits';
const formType = 'multipart/form-data; boundary=x';

const text = (name: string, value: string | Buffer, type = '') =>
  Buffer.concat([
    Buffer.from(`--x\r\nContent-Disposition: form-data; name="${name}"\r\n${type}\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
const file = (name: string, content: Buffer) =>
  Buffer.concat([
    Buffer.from(`--x\r\nContent-Disposition: form-data; name="${name}"; filename="a.png"\r\n\r\n`),
    content,
    Buffer.from('\r\n'),
  ]);
const form = (...parts: Buffer[]) => Buffer.concat([...parts, Buffer.from('--x--\r\n')]);

/** A picture that no compression makes smaller. */
const noise = (side: number) =>
  sharp(randomBytes(side * side * 3), { raw: { width: side, height: side, channels: 3 } })
    .png()
    .toBuffer();

describe('a form of POST /v1/images/edits', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://darkroom.example' }));
  const key = ofTest(() => api.createKey({ sandbox: true }));
  const usualWindowMs = uploadProgress.windowMs;

  afterEach(() => {
    uploadProgress.windowMs = usualWindowMs;
    jest.restoreAllMocks();
  });

  const send = (raw: Uint8Array | string, type = formType) =>
    api.request<Refusal>('POST', path, { key, raw, headers: { 'content-type': type } });
  const uploads = () => api.dataSource.manager.countBy(UploadedPicture, { ownerId: key.id });
  const places = () => api.dataSource.manager.countBy(Upload, { ownerId: key.id });
  const halfFiles = () => readdir(join(api.config.dataDir, 'uploads')).catch((): string[] => []);

  /** A connection on which only the beginning of a form is sent. */
  const begin = (...parts: Buffer[]): Socket => {
    const { hostname, port } = new URL(api.baseUrl);
    const socket = connect(Number(port), hostname);
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: darkroom',
      `Authorization: Bearer ${key.token}`,
      `Content-Type: ${formType}`,
      'Content-Length: 9000000',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    for (const part of parts) socket.write(part);
    return socket;
  };
  const answerOn = async (socket: Socket): Promise<string> => {
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    await until(async () => answer.includes('"code"'), 'the form is answered', 10_000);
    return answer;
  };

  it('is refused without a boundary, and cut off where a text trickles; neither ends the process', async () => {
    uploadProgress.windowMs = 500;
    const refused = await send('abc', 'multipart/form-data');
    expect([refused.status, refused.body.error.code]).toEqual([400, 'MalformedBody']);
    const socket = begin(text('prompt', 'a').subarray(0, -2));
    const trickle = setInterval(() => socket.write('a'), 20);
    try {
      expect(await answerOn(socket)).toMatch(/^HTTP\/1.1 408[^]+UploadStalled/);
    } finally {
      clearInterval(trickle);
      socket.destroy();
    }
    expect((await send(form())).status).toBe(400);
  });

  it('gives its places and half files back at once when it breaks off in a file', async () => {
    const socket = begin(file('image', await noise(400)).subarray(0, 200_000));
    await until(async () => (await halfFiles()).length === 1, 'the file has begun', 10_000);
    expect(await places()).toBe(1);
    socket.destroy();
    await until(async () => (await places()) === 0 && (await halfFiles()).length === 0, 'all is released', 10_000);
    expect(await uploads()).toBe(0);
  });

  it('keeps no file that has come when it breaks off after it', async () => {
    const receive = jest.spyOn(UploadedPicturesService.prototype, 'receive');
    const socket = begin(file('image', await noise(1_000)), text('prompt', 'a star').subarray(0, -2));
    await until(async () => receive.mock.results.length === 1 && (await places()) === 1, 'the file has come', 10_000);
    socket.destroy();
    await (receive.mock.results[0].value as Promise<unknown>).catch(() => undefined);
    await until(
      async () => (await storedKeys(api)).every((name) => !name.startsWith('uploads/')),
      'it is removed',
      10_000,
    );
    expect([await uploads(), await halfFiles()]).toEqual([0, []]);
  });

  it.each([
    ['that is not UTF-8', [text('prompt', Buffer.from([0xff, 0xfe]))], 400, 'prompt', 'must be text in UTF-8'],
    [
      'in an unknown encoding',
      [text('prompt', 'a', 'Content-Type: text/plain; charset=klingon\r\n')],
      400,
      'prompt',
      'must be text in UTF-8',
    ],
    ['that is there twice', [text('prompt', 'a'), text('prompt', 'b')], 400, 'prompt', 'is there twice'],
    ['of megabytes', [text('prompt', 'a'.repeat(5e6))], 413, 'prompt', '"/prompt" must be at most 128000 bytes'],
    ['in the place of a file', [text('image', 'a'), text('prompt', 'a')], 400, 'image', 'must be a file'],
    ['below the bounds', [text('prompt', 'a'), text('n', '-1')], 400, 'n', 'must be from 1 to 10, got -1'],
  ])('is refused with a text %s', async (_, parts, status, param, message) => {
    const refused = await send(form(file('mask', await noise(8)), ...parts));
    expect([refused.status, refused.body.error.param]).toEqual([status, param]);
    expect(refused.body.error.message).toContain(message);
    expect(await uploads()).toBe(0);
  });

  it('has its pictures deleted with its record, or with the last that uses them, or by retention', async () => {
    const edit = async () => {
      const mask = await sharp(await noise(8))
        .ensureAlpha(0)
        .png()
        .toBuffer();
      const both = [file('image', await noise(8)), file('mask', mask), text('prompt', 'a star')];
      expect((await send(form(...both))).status).toBe(200);
      return (await records())[0];
    };
    const records = async () =>
      (await api.request<{ id: string; image: string; mask: string }[]>('GET', '/v1/sd/text-to-image', { key })).body;
    const remove = (id: string) => api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
    const files = async () => (await storedKeys(api)).filter((name) => name.startsWith('uploads/')).length;

    const first = await edit();
    const body = { prompt: 'a ring', image: first.image };
    const second = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
    expect(second.status).toBe(201);
    await remove(first.id);
    expect([await uploads(), await files()]).toEqual([1, 1]);
    await remove(second.body.id);
    expect([await uploads(), await files()]).toEqual([0, 0]);

    const { id } = await edit();
    expect(await files()).toBe(2);
    const { manager } = api.dataSource;
    await manager.update(ApiKey, { id: key.id }, { retentionDays: 1 });
    await manager.update(Task, { id }, { completedAt: new Date(0) });
    expect(await api.app.get(RetentionService).run()).toMatchObject({ records: 1 });
    expect([await uploads(), await files()]).toEqual([0, 0]);
    const [{ bytes }] = await manager.query<[{ bytes: string }]>(
      'SELECT picture_bytes AS bytes FROM storage_use WHERE owner_id = $1',
      [key.id],
    );
    expect(Number(bytes)).toBe(0);
  });

  it('may say in which encoding its texts are', async () => {
    const prompt = text(
      'prompt',
      Buffer.from('\xe9toile', 'latin1'),
      'Content-Type: text/plain; charset=iso-8859-1\r\n',
    );
    expect((await send(form(file('image', await noise(8)), prompt))).status).toBe(200);
    const { body } = await api.request<{ text: string }[]>('GET', '/v1/sd/text-to-image', { key });
    expect(JSON.stringify(body)).toContain('étoile');
  });
});
