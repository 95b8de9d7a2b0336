import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { loadConfig } from '@app/config';
import {
  FileImageStorage,
  type ImageStorage,
  openImageStorage,
  S3ImageStorage,
  StorageUnavailableError,
} from '@app/storage';
import { type S3Server, startS3 } from '../support/s3-server';

const keysOf = async (storage: ImageStorage, prefix?: string): Promise<string[]> => {
  const keys: string[] = [];
  for await (const { key } of storage.list(prefix)) keys.push(key);
  return keys.sort();
};

describe.each(['file', 's3'] as const)('the storage contract: %s', (kind) => {
  let server: S3Server;
  let folder: string;
  let storage: ImageStorage;

  beforeEach(async () => {
    server = await startS3();
    folder = await mkdtemp(join(tmpdir(), 'darkroom-storage-'));
    storage = openImageStorage(loadConfig({ DATA_DIR: folder, ...(kind === 's3' && server.env) }));
  });

  afterEach(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('is the configured one', () => {
    expect(storage).toBeInstanceOf(kind === 's3' ? S3ImageStorage : FileImageStorage);
  });

  it('reads what was written, from bytes and from a stream', async () => {
    const bytes = Buffer.from('a picture');
    await storage.write('a/1/0.png', bytes);
    await storage.write('a/1/1.png', Readable.from([bytes, Buffer.from(' and more')]));
    const first = await storage.read('a/1/0.png');
    expect(first?.bytes).toBe(bytes.length);
    expect(await buffer(first!.stream)).toEqual(bytes);
    expect(await text((await storage.read('a/1/1.png'))!.stream)).toBe('a picture and more');
    const part = (await storage.read('a/1/1.png', { start: 2, end: 8 }))!;
    expect([await text(part.stream), part.bytes]).toEqual(['picture', 7]);
  });

  it.each([
    ['beside it', ''],
    ['on another file system', '/dev/shm'],
  ])('reads what was adopted from a file %s, and counts its age from then', async (_, elsewhere) => {
    const from = elsewhere && existsSync(elsewhere) ? await mkdtemp(join(elsewhere, 'darkroom-')) : folder;
    try {
      await writeFile(join(from, 'file'), 'a LoRA');
      await utimes(join(from, 'file'), 0, 0);
      await storage.adopt('a/1/lora.safetensors', join(from, 'file'));
      expect(await text((await storage.read('a/1/lora.safetensors'))!.stream)).toBe('a LoRA');
      for await (const { modifiedAt } of storage.list())
        expect(Math.abs(modifiedAt.getTime() - Date.now())).toBeLessThan(60_000);
    } finally {
      await rm(from, { recursive: true, force: true });
    }
  });

  it('replaces an object atomically', async () => {
    await storage.write('a/0.png', Buffer.from('first'));
    await storage.write('a/0.png', Buffer.from('second'));
    expect(await text((await storage.read('a/0.png'))!.stream)).toBe('second');
  });

  it('writes an object while the last other one of its folder is removed', async () => {
    for (let n = 0; n < 100; n++) {
      await storage.write(`a/${n}/old.png`, Buffer.from('old'));
      await Promise.all([storage.write(`a/${n}/new.png`, Buffer.from('new')), storage.removeAll(`a/${n}/old.png`)]);
    }
    expect(await keysOf(storage)).toHaveLength(100);
  });

  it('has no object that was not written', async () => {
    expect(await storage.read('a/b.png')).toBeUndefined();
    expect(await keysOf(storage)).toEqual([]);
    await expect(storage.localPath('a/b.png')).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(storage.removeAll('a')).resolves.toBeUndefined();
  });

  it('leaves nothing of a stream that fails', async () => {
    const broken = Readable.from(
      (function* () {
        yield Buffer.from('half');
        throw new Error('gone');
      })(),
    );
    await expect(storage.write('a/0.png', broken)).rejects.toThrow('gone');
    expect(await keysOf(storage)).toEqual([]);
    const left = await readdir(folder, { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
  });

  it('lists and removes what is under a prefix and nothing else, however much it is', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `a/1/${i}.png`);
    for (const key of [...names, 'a/10/0.png', 'ab/0.png', 'b.png']) await storage.write(key, Buffer.from(key));
    expect(await keysOf(storage, 'a/1')).toEqual(names);
    expect(await keysOf(storage)).toHaveLength(11);
    await storage.removeAll('a/1');
    expect(await keysOf(storage)).toEqual(['a/10/0.png', 'ab/0.png', 'b.png']);
    await storage.removeAll('b.png');
    await storage.removeAll('a/');
    expect(await keysOf(storage)).toEqual(['ab/0.png']);
  });

  it('lists objects with size and time', async () => {
    await storage.write('a/0.png', Buffer.alloc(17));
    for await (const { bytes, modifiedAt } of storage.list()) {
      expect(bytes).toBe(17);
      expect(Math.abs(modifiedAt.getTime() - Date.now())).toBeLessThan(60_000);
    }
  });

  it('returns a local path with the object’s current content', async () => {
    await storage.write('w/lora.safetensors', Buffer.from('one'));
    expect(await readFile(await storage.localPath('w/lora.safetensors'), 'utf8')).toBe('one');
    await storage.write('w/lora.safetensors', Buffer.from('two'));
    expect(await readFile(await storage.localPath('w/lora.safetensors'), 'utf8')).toBe('two');
  });

  it('rejects keys outside of it', async () => {
    for (const key of ['../x', 'a/../../x', '/etc/x', '']) await expect(storage.read(key)).rejects.toThrow('no key');
  });

  it('reports whether it is writable', async () => {
    await expect(storage.check()).resolves.toBeUndefined();
    server.trouble('deny');
    // A file is in the place of the folder.
    await rm(join(folder, 'images'), { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'images'), '');
    await expect(storage.check()).rejects.toThrow();
  });
});

describe(S3ImageStorage.name, () => {
  let server: S3Server;
  let folder: string;
  let storage: ImageStorage;
  const open = (env = {}): ImageStorage => openImageStorage(loadConfig({ DATA_DIR: folder, ...server.env, ...env }));

  beforeEach(async () => {
    server = await startS3();
    folder = await mkdtemp(join(tmpdir(), 'darkroom-s3-'));
    storage = open();
  });

  afterEach(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('fetches an object once', async () => {
    await storage.write('w/a', Buffer.from('weights'));
    const paths = [await storage.localPath('w/a'), await storage.localPath('w/a')];
    expect(paths[0]).toBe(paths[1]);
    expect(server.requests.filter((request) => request.startsWith('GET'))).toHaveLength(1);
  });

  it('keeps fetched objects within a number of bytes, those that were used last', async () => {
    const { s3 } = loadConfig({ DATA_DIR: folder, ...server.env });
    const cache = join(folder, 'cache', 's3');
    const small = new S3ImageStorage(s3!, cache, 25);
    const fetched = new Map<string, string>();
    for (const [index, key] of ['w/a', 'w/b', 'w/c', 'w/d'].entries()) {
      await small.write(key, Buffer.alloc(10, index));
      const path = await small.localPath(key);
      fetched.set(key, path);
      const used = new Date(Date.now() - (10 - index) * 3_600_000);
      await utimes(path, used, used);
    }
    // When the fourth came, there were three of ten bytes.
    expect((await readdir(cache)).sort()).toEqual(
      ['w/b', 'w/c', 'w/d'].map((key) => basename(fetched.get(key)!)).sort(),
    );
  });

  it('retries when the store is busy, also with a stream', async () => {
    server.trouble('unavailable', 2);
    await storage.write('a', Buffer.from('bytes'));
    server.trouble('unavailable', 2);
    await storage.write('b', Readable.from([Buffer.from('stream')]));
    expect(server.objects.get('a')?.data.toString()).toBe('bytes');
    expect(server.objects.get('b')?.data.toString()).toBe('stream');
  });

  it('reports a rejection without retrying', async () => {
    server.trouble('deny');
    const refused = storage.write('a', Buffer.from('x'));
    await expect(refused).rejects.toThrow(StorageUnavailableError);
    await expect(refused).rejects.toMatchObject({
      isPassing: false,
      message: expect.stringContaining('403') as string,
    });
    expect(server.requests).toHaveLength(1);
  });

  it('fails with a wrong secret', async () => {
    await expect(open({ S3_SECRET_ACCESS_KEY: 'wrong' }).write('a', Buffer.from('x'))).rejects.toThrow('403');
    expect(server.objects.size).toBe(0);
  });

  it('keeps nothing of an interrupted transfer', async () => {
    await storage.write('w/a', Buffer.alloc(200_000, 1));
    server.trouble('breakOff', 2);
    await expect(storage.localPath('w/a')).rejects.toThrow();
    expect((await readdir(join(folder, 'cache', 's3'))).filter((name) => !name.endsWith('.part'))).toEqual([]);
    server.trouble(undefined);
    expect(await readFile(await storage.localPath('w/a'))).toHaveLength(200_000);
  });

  it('fails where no store is', async () => {
    server.trouble('elsewhere');
    await expect(storage.check()).rejects.toThrow('The storage cannot be used: 404');
    await expect(storage.write('a', Buffer.from('x'))).rejects.toThrow(StorageUnavailableError);
    await expect(keysOf(storage)).rejects.toThrow(StorageUnavailableError);
  });

  it('takes no part of a list for the whole', async () => {
    for (let i = 0; i < 8; i++) await storage.write(`a/${i}`, Buffer.from('x'));
    server.trouble('noToken');
    await expect(keysOf(storage)).rejects.toThrow('breaks off');
    await expect(storage.removeAll('a')).rejects.toThrow('breaks off');
    expect(server.objects.size).toBe(8);
  });

  it('prints nothing, also where the SDK would rather have another Node', async () => {
    const storageOf = JSON.stringify(resolve('dist', 'libs', 'storage', 'src', 'index.js'));
    const s3 = { endpoint: server.env.S3_ENDPOINT, region: server.env.S3_REGION, bucket: server.env.S3_BUCKET };
    const keys = { accessKeyId: server.env.S3_ACCESS_KEY_ID, secretAccessKey: server.env.S3_SECRET_ACCESS_KEY };
    const settings = JSON.stringify({ dataDir: folder, s3: { ...s3, ...keys, forcePathStyle: true } });
    const script = `void require(${storageOf}).openImageStorage(${settings}).check()`;
    const printed = await promisify(execFile)(process.execPath, ['-e', script], { env: { PATH: process.env.PATH } });
    expect(printed).toEqual({ stdout: '', stderr: '' });
    expect([...server.objects.keys()]).toEqual(['health/writable']);
  });

  it('reports that the store cannot be reached', async () => {
    await server.close();
    await expect(storage.read('a')).rejects.toMatchObject({ name: 'StorageUnavailableError', isPassing: true });
    server = await startS3();
  });
});
