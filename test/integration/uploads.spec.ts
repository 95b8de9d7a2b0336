import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Image, newIdentifier, PictureUse, StorageUse, Task, Upload, UploadedPicture } from '@app/domain';
import type { UploadDto } from '@app/domain/http';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { dropUploads, type NamedPicture, useUploads } from '@app/tasks';
import sharp from 'sharp';
import { StorageUseSweeper } from '../../apps/api/src/files/storage-use.sweeper';
import { UploadsService } from '../../apps/api/src/files/uploads.service';
import { UploadedPicturesSweeper } from '../../apps/api/src/uploads/uploaded-pictures.sweeper';
import { createClient } from '../../packages/client/src';
import { type RequestOptions, startTestApi, type TestKey } from '../support/api';
import { drawTask, storedKeys } from '../support/factories';
import { ofSuite } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';
import { until } from '../support/until';

const dayMs = 24 * 3_600_000;
/** Noise, which no format makes small. */
const noise = (width: number, height: number): Promise<Buffer> =>
  sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();

describe('Uploads', () => {
  const api = ofSuite(startTestApi);
  const [key, other] = [ofSuite(() => api.createKey()), ofSuite(() => api.createKey())];

  const send = (raw: Uint8Array | string, options: RequestOptions = {}) =>
    api.request<UploadDto & { code: string; detail: string }>('POST', '/v1/uploads', { key, raw, ...options });
  const pictureAt = async (url: string) => {
    const reply = await fetch(url.replace(api.config.publicUrl, api.baseUrl));
    return { reply, bytes: Buffer.from(await reply.arrayBuffer()) };
  };
  const storedBytes = async (owner: TestKey): Promise<number> =>
    (await api.dataSource.manager.findOneBy(StorageUse, { ownerId: owner.id }))?.pictureBytes ?? 0;
  const spooled = (): Promise<string[]> => readdir(join(api.config.dataDir, 'uploads')).catch(() => []);
  /** A Generation that needs these pictures. */
  const generationWith = async (pictures: NamedPicture[], owner = key): Promise<string> => {
    const { body } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
      key: owner,
      body: { prompt: 'a star' },
    });
    const needed = { publicUrl: api.config.publicUrl, accountId: owner.id, taskId: body.id, pictures };
    await api.dataSource.transaction((manager) => useUploads(manager, needed));
    return body.id;
  };
  const sweep = (at = Date.now()) => api.app.get(UploadedPicturesSweeper).sweep(at);

  it('are answered with what they are and until when they are kept', async () => {
    const { status, body, headers } = await send(await smallPicture('#0f0', 30, 20), {
      headers: { 'content-type': 'image/jpeg' },
    });
    expect([status, headers.get('location')]).toEqual([201, `${api.config.publicUrl}/v1/uploads/${body.id}`]);
    expect(body).toEqual({
      id: expect.stringMatching(/^[\w-]{24}$/) as string,
      url: expect.stringMatching(/\/images\/[\w-]{24}\.png$/) as string,
      content_type: 'image/png',
      width: 30,
      height: 20,
      bytes: expect.any(Number) as number,
      created_at: expect.any(String) as string,
      expires_at: new Date(Date.parse(body.created_at) + dayMs).toISOString(),
    });
    expect((await api.request('GET', `/v1/uploads/${body.id}`, { key })).body).toEqual(body);
    const { reply, bytes } = await pictureAt(body.url);
    expect([reply.status, reply.headers.get('content-type'), bytes.length]).toEqual([200, 'image/png', body.bytes]);
    expect(reply.headers.get('cache-control')).toMatch(/^private\b/);
  });

  it('are kept upright, with nothing but their pixels', async () => {
    const camera = await sharp(await smallPicture('#00f', 40, 10))
      .withExif({ IFD0: { Make: 'A camera', Copyright: 'Somebody' }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer();
    const { body } = await send(camera);
    expect([body.content_type, body.width, body.height]).toEqual(['image/png', 10, 40]);
    const { bytes } = await pictureAt(body.url);
    const { width, height, orientation, exif, icc, xmp } = await sharp(bytes).metadata();
    expect([width, height, orientation, exif, icc, xmp]).toEqual([10, 40, undefined, undefined, undefined, undefined]);
    expect(bytes.includes('camera')).toBe(false);
  });

  it.each(['png', 'jpeg', 'webp'] as const)('are to the byte what came, without what was said: %s', async (format) => {
    const pixels = sharp(await noise(90, 70)).blur(1);
    const options = { png: {}, jpeg: { quality: 80 }, webp: { quality: 70 } }[format];
    const said = { IFD0: { Copyright: 'Somebody' }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } };
    const xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><a>Somebody</a></x:xmpmeta>';
    const make = (picture: sharp.Sharp) => picture.withIccProfile('p3').toFormat(format, options).toBuffer();
    const plain = await make(pixels.clone());
    const telling = await make(pixels.clone().withExif(said).withXmp(xmp));
    expect(telling.includes('Somebody')).toBe(true);
    for (const file of [plain, telling, Buffer.concat([telling, Buffer.from('and Somebody behind it')])]) {
      const { body } = await send(file);
      const { bytes } = await pictureAt(body.url);
      expect([body.content_type, body.bytes]).toEqual([`image/${format}`, bytes.length]);
      expect(bytes.includes('Somebody')).toBe(false);
      const [before, after] = [await sharp(file).metadata(), await sharp(bytes).metadata()];
      expect([after.exif, after.xmp, after.icc]).toEqual([undefined, undefined, before.icc]);
      const [shown, kept] = [await sharp(file).raw().toBuffer(), await sharp(bytes).raw().toBuffer()];
      expect(kept.equals(shown)).toBe(true);
      if (file === plain && format !== 'png') expect(bytes.equals(plain)).toBe(true);
    }
  });

  it('keep every pixel of a PNG and of a lossless WebP, and what is transparent', async () => {
    const pixels = randomBytes(64 * 64 * 4);
    const picture = sharp(pixels, { raw: { width: 64, height: 64, channels: 4 } });
    for (const file of [
      await picture.png().toBuffer(),
      await picture.webp({ lossless: true, exact: true }).toBuffer(),
    ]) {
      const { bytes } = await pictureAt((await send(file)).body.url);
      const [before, after] = await Promise.all([sharp(file).raw().toBuffer(), sharp(bytes).raw().toBuffer()]);
      const differences = [...before].filter((value, i) => before[i | 3] > 0 && value !== after[i]);
      expect([after.length, differences.length]).toEqual([before.length, 0]);
    }
  });

  const unreadable: [string, () => Promise<Uint8Array> | Uint8Array, string][] = [
    ['text', () => Buffer.from('Here is no picture.'), 'The file is no picture, and a PNG, JPEG or WebP is needed.'],
    ['a GIF', () => Buffer.from('GIF89a'), 'The file is a GIF, and a PNG, JPEG or WebP is needed.'],
    [
      'a form of it',
      () => Buffer.from('<html></html>'),
      'The file is a page of HTML, and a PNG, JPEG or WebP is needed.',
    ],
    ['half of one', async () => (await noise(50, 50)).subarray(0, 4000), 'The file is broken: '],
    ['the beginning of one', () => Buffer.from('89504e470d0a1a0a', 'hex'), 'The file is broken: '],
    [
      'a bomb',
      () =>
        sharp({ create: { width: 8_000, height: 8_000, channels: 3, background: '#fff' } })
          .png({ compressionLevel: 9 })
          .toBuffer(),
      'The file has 8000 x 8000 pixels, and at most 50 megapixels are taken.',
    ],
  ];
  it.each(unreadable)('are refused with a sentence: %s', async (_, file, detail) => {
    const before = await storedBytes(key);
    const { status, body } = await send(await file());
    expect([status, body.code, body.detail]).toEqual([
      422,
      'PictureUnreadable',
      expect.stringContaining(detail) as string,
    ]);
    expect([await storedBytes(key), await spooled()]).toEqual([before, []]);
  });

  it('are no more than 20 MB, no form, and not empty', async () => {
    const form = { 'content-type': 'multipart/form-data; boundary=x' };
    const replies = [
      await send(Buffer.alloc(20_000_001)),
      await send('--x--', { headers: form }),
      await send(new Uint8Array(0)),
    ];
    expect(replies.map(({ status, body }) => [status, body.code])).toEqual([
      [413, 'BodyTooLarge'],
      [415, 'UnsupportedMediaType'],
      [400, 'MalformedBody'],
    ]);
  });

  it('count against the storage of their key, and no longer when they are deleted', async () => {
    const owner = await api.createKey({ maxStorageMb: 1 });
    const { body } = await send(await noise(500, 500), { key: owner });
    expect(await storedBytes(owner)).toBe(body.bytes);
    const full = await send(await noise(500, 500), { key: owner });
    expect([full.status, full.body.code]).toEqual([422, 'StorageFull']);
    await api.app.get(StorageUseSweeper).sweep(0);
    expect(await storedBytes(owner)).toBe(body.bytes);
    expect((await api.request('DELETE', `/v1/uploads/${body.id}`, { key: owner })).status).toBe(200);
    expect([await storedBytes(owner), (await pictureAt(body.url)).reply.status]).toEqual([0, 404]);
    expect((await api.request('GET', `/v1/uploads/${body.id}`, { key: owner })).status).toBe(404);
    expect((await storedKeys(api)).filter((name) => name.includes(body.id))).toEqual([]);
  });

  it('that grow as they are turned upright count as stored, and are refused without a trace where there is no room', async () => {
    const [width, height] = [600, 600];
    const picture = sharp(await noise(width, height))
      .withMetadata({ orientation: 3 })
      .jpeg({ quality: 50 });
    const file = await picture.toBuffer();
    const stored = (await send(file)).body.bytes;
    expect(stored).toBeGreaterThan(2 * file.length);
    const owner = await api.createKey({ maxStorageMb: 1 });
    await api.dataSource.manager.insert(StorageUse, {
      ...{ ownerId: owner.id, weightBytes: 0 },
      pictureBytes: 1e6 - stored + 1,
    });
    const before = await storedKeys(api);
    const full = await send(file, { key: owner });
    expect([full.status, full.body.code]).toEqual([422, 'StorageFull']);
    expect([await storedKeys(api), await storedBytes(owner)]).toEqual([before, 1e6 - stored + 1]);
    await api.dataSource.manager.update(StorageUse, { ownerId: owner.id }, { pictureBytes: 1e6 - stored });
    expect((await send(file, { key: owner })).status).toBe(201);
  });

  it('are made once for an Idempotency-Key, which is of one file', async () => {
    const headers = { 'idempotency-key': newIdentifier() };
    const [first, second] = [await smallPicture('#123'), await smallPicture('#456')];
    const [made, repeated] = [await send(first, { headers }), await send(first, { headers })];
    expect([repeated.status, repeated.body, repeated.headers.get('idempotency-replayed')]).toEqual([
      201,
      made.body,
      'true',
    ]);
    const another = await send(second, { headers });
    expect([another.status, another.body.code]).toEqual([422, 'IdempotencyKeyReused']);
    await api.request('DELETE', `/v1/uploads/${made.body.id}`, { key });
    expect((await send(second, { headers })).status).toBe(201);
  });

  it('wait in line at their senders, for a time, and of a flood some are refused', async () => {
    const owner = await api.createKey();
    const file = await smallPicture();
    const open = () => {
      const headers = { authorization: `Bearer ${owner.token}`, 'content-length': String(file.length) };
      const sending = httpRequest(`${api.baseUrl}/v1/uploads`, { method: 'POST', headers });
      sending.on('error', () => undefined).write(file.subarray(0, 10));
      return { sending, answer: once(sending, 'response') as Promise<[IncomingMessage]> };
    };
    const first = Array.from({ length: 4 }, open);
    await until(async () => (await api.dataSource.manager.countBy(Upload, { ownerId: owner.id })) === 4, 'four come');
    const waiting = send(file, { key: owner });
    const theirs = await send(file, { key: other });
    expect(theirs.status).toBe(201);
    const abort = new AbortController();
    const flood = Array.from({ length: 32 }, () =>
      fetch(`${api.baseUrl}/v1/uploads`, {
        method: 'POST',
        headers: { authorization: `Bearer ${owner.token}` },
        body: new Uint8Array(file),
        signal: abort.signal,
      }),
    );
    const refused = await Promise.race(flood);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
    expect(await refused.json()).toMatchObject({ code: 'TooManyUploads' });
    abort.abort();
    await Promise.allSettled(flood);
    for (const { sending } of first) sending.end(file.subarray(10));
    for (const { answer } of first) {
      const [reply] = await answer;
      expect(reply.resume().statusCode).toBe(201);
    }
    expect((await waiting).status).toBe(201);
  });

  it('that wait for too long are refused, and of a sender who has left nothing waits', async () => {
    const owner = await api.createKey();
    const { longestWaitMs } = UploadsService;
    const rows = Array.from({ length: 4 }, () => ({ id: newIdentifier(), ownerId: owner.id, bytes: 1 }));
    // Another process receives them.
    await api.dataSource.manager.insert(
      Upload,
      rows.map((row) => ({ ...row, renewedAt: () => 'now()' })),
    );
    UploadsService.longestWaitMs = 50;
    const late = await send(await smallPicture(), { key: owner });
    expect([late.status, late.body.code]).toEqual([429, 'TooManyUploads']);
    UploadsService.longestWaitMs = longestWaitMs;
    const waiting = send(await smallPicture(), { key: owner });
    await api.dataSource.manager.delete(Upload, { ownerId: owner.id });
    expect((await waiting).status).toBe(201);
  });

  it.each([
    [
      'a form',
      () => ({ raw: '--x--', headers: { 'content-type': 'multipart/form-data; boundary=x' } }),
      415,
      '--data-binary',
    ],
    ['a data: URL', () => ({ raw: 'data:image/png;base64,iVBORw0KGgo=' }), 422, 'a data: URL'],
  ])('refuse %s with a hint', async (_, options, status, hint) => {
    const reply = await send('', options());
    expect([reply.status, reply.body.detail]).toEqual([status, expect.stringContaining(hint)]);
  });

  it('are what the refusal of a data: URL names, however long it is', async () => {
    for (const image of ['data:image/png;base64,AAAA', `data:image/png;base64,${'A'.repeat(100_000)}`])
      for (const body of [
        { prompt: 'x', image },
        { prompt: 'x', image: 'https://x.example/a.png', mask: image },
        { prompt: 'x', control: [{ image, model: 'm' }] },
        { name: 'robot', images_url: [image] },
      ]) {
        const reply = await api.request<{ detail: string }>('POST', '/v1/finetunes', { key, body });
        expect([reply.status, reply.body.detail]).toEqual([400, expect.stringContaining('POST /v1/uploads')]);
      }
  });

  it('work for sandbox keys, and need the scope to write', async () => {
    expect((await send(await smallPicture(), { key: await api.createKey({ sandbox: true }) })).status).toBe(201);
    expect((await send(await smallPicture(), { key: await api.createKey({ scopes: ['read'] }) })).status).toBe(403);
  });

  it('go after a day with their files, unless a record uses them', async () => {
    const [old, used] = [(await send(await smallPicture())).body, (await send(await smallPicture())).body];
    const generation = await generationWith([{ url: used.url, field: 'image' }]);
    const shown = async () => (await api.request<UploadDto>('GET', `/v1/uploads/${used.id}`, { key })).body.expires_at;
    expect(await shown()).toBeNull();
    await sweep(Date.parse(old.created_at) + dayMs - 1000);
    expect((await api.request('GET', `/v1/uploads/${old.id}`, { key })).status).toBe(200);
    const later = Date.parse(used.created_at) + dayMs + 1000;
    await sweep(later);
    const ids = (await api.dataSource.manager.find(UploadedPicture)).map(({ id }) => id);
    expect(ids).toEqual([used.id]);
    expect((await storedKeys(api)).filter((name) => name.startsWith('uploads/'))).toEqual([`uploads/${used.id}.png`]);
    expect(await storedBytes(key)).toBe(used.bytes);
    await api.request('DELETE', `/v1/sd/text-to-image/${generation}`, { key });
    expect(await shown()).toBe(used.expires_at);
    expect(await sweep(later)).toEqual({ uploads: 1, files: 0 });
    expect([await storedBytes(key), await api.dataSource.manager.count(PictureUse)]).toEqual([0, 0]);
  });

  it('leave no file without a row for longer than a day', async () => {
    await api.app.get<ImageStorage>(IMAGE_STORAGE).write('uploads/stray.png', await smallPicture());
    expect(await sweep(Date.now() + dayMs)).toMatchObject({ files: 1 });
    expect((await storedKeys(api)).filter((name) => name.startsWith('uploads/stray'))).toEqual([]);
  });

  it('are named by records only of their owner, all or none', async () => {
    const mine = (await send(await smallPicture())).body;
    const drawn = await generationWith([]);
    await drawTask(api, drawn);
    const { token } = await api.dataSource.manager.findOneByOrFail(Image, { taskId: drawn });
    const own = [
      { url: mine.url, field: 'image' },
      { url: `${api.config.publicUrl}/images/${token}.png`, field: 'mask' },
      { url: 'https://elsewhere.example/x.png', field: 'control[0].image' },
    ];
    const taskId = await generationWith(own);
    expect(await api.dataSource.manager.findBy(PictureUse, { taskId })).toEqual([{ taskId, uploadId: mine.id }]);
    const refused = generationWith([...own.slice(2), own[0], { url: own[1].url, field: 'control[1].image' }], other);
    await expect(refused).rejects.toMatchObject({
      code: 'PictureNotFound',
      fields: [{ pointer: '/image' }, { pointer: '/control/1/image' }],
    });
    expect(await api.dataSource.manager.countBy(Task, { ownerId: other.id })).toBe(1);
    expect(await api.dataSource.manager.countBy(PictureUse, { uploadId: mine.id })).toBe(1);
  });

  it('that only one task used can go with its end', async () => {
    const [shared, single] = [(await send(await smallPicture())).body, (await send(await smallPicture())).body];
    const [first, second] = [
      await generationWith([
        { url: shared.url, field: 'image' },
        { url: single.url, field: 'mask' },
      ]),
      await generationWith([{ url: shared.url, field: 'image' }]),
    ];
    const before = await storedBytes(key);
    const keys = await api.dataSource.transaction((manager) => dropUploads(manager, [first]));
    expect(keys).toEqual([`uploads/${single.id}.png`]);
    expect(await storedBytes(key)).toBe(before - single.bytes);
    expect(await api.dataSource.manager.find(PictureUse, { where: { uploadId: shared.id } })).toEqual([
      { taskId: second, uploadId: shared.id },
    ]);
  });

  it('are listed newest first, whole or in pages, for their owner alone', async () => {
    const owner = await api.createKey();
    const made: UploadDto[] = [];
    for (let n = 0; n < 5; n++) made.unshift((await send(await smallPicture(), { key: owner })).body);
    // Those of one millisecond are told apart too.
    await api.dataSource.manager.update(
      UploadedPicture,
      { ownerId: owner.id },
      { createdAt: new Date(made[2].created_at) },
    );
    const whole = await api.request<UploadDto[]>('GET', '/v1/uploads', { key: owner });
    expect(new Set(whole.body.map(({ id }) => id))).toEqual(new Set(made.map(({ id }) => id)));
    const { uploads } = createClient({ baseUrl: api.baseUrl, apiKey: owner.token });
    const paged: unknown[] = [];
    for await (const upload of uploads.pages({ limit: 2 })) paged.push(upload);
    expect(paged.flat()).toEqual(whole.body);
    expect((await api.request('GET', '/v1/uploads', { key: await api.createKey() })).body).toEqual([]);
    const used = whole.body[0];
    await generationWith([{ url: used.url, field: 'image' }], owner);
    expect(await uploads.list({ limit: 1 })).toEqual([{ ...used, expires_at: null }]);
  });

  it('are sent by the client as bytes, as a file or as a stream', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-upload-'));
    const path = join(folder, 'picture.png');
    const bytes = await smallPicture('#abc', 12, 6);
    await writeFile(path, bytes);
    const { uploads } = createClient({ baseUrl: api.baseUrl, apiKey: key.token });
    const files = [bytes, new Blob([bytes]), createReadStream(path), Readable.toWeb(createReadStream(path))];
    for (const file of files) {
      const made = await uploads.create(file as Uint8Array);
      expect([made.width, made.height]).toEqual([12, 6]);
      expect(await uploads.get(made.id)).toEqual(made);
      await uploads.delete(made.id);
      await expect(uploads.get(made.id)).rejects.toMatchObject({ status: 404, code: 'UploadNotFound' });
    }
    await rm(folder, { recursive: true });
  });
});
