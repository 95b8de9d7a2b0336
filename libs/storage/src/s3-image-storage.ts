import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { S3Config } from '@app/config';
import type * as Sdk from '@aws-sdk/client-s3';
import { type ByteRange, type ImageStorage, StorageUnavailableError, type StoredObject } from './image-storage';
import { clientOf, type OpenedS3, tries } from './s3-client';

const deletedAtOnce = 16;
/** Cached files that were not used for this long are deleted when another is fetched. */
const unusedMs = 7 * 24 * 3_600_000;
/** Those used longest ago are deleted too, while all of them together have more bytes than this. */
const maxCacheBytes = 5e9;
/** One that was asked for this recently may be about to be opened. */
const inUseMs = 15 * 60_000;
/** Key that is written to test whether the bucket is writable. */
const checkKey = 'health/writable';

type Question<T> = (opened: OpenedS3) => Promise<T>;

/** Objects in a bucket of an S3-compatible store. The SDK is loaded at the first request. */
export class S3ImageStorage implements ImageStorage {
  private opened?: OpenedS3;

  /** @param cacheDir for fetched and outgoing files. */
  constructor(
    private readonly config: S3Config,
    private readonly cacheDir: string,
    private readonly cacheBytes = maxCacheBytes,
  ) {}

  async write(key: string, data: Uint8Array | Readable): Promise<void> {
    assertKey(key);
    if (!(data instanceof Readable)) return this.put(key, () => data, data.length);
    // S3 needs the length in advance, and a failed request must be sent again from its beginning.
    await mkdir(this.cacheDir, { recursive: true });
    const spool = join(this.cacheDir, `${randomBytes(12).toString('hex')}.part`);
    try {
      await pipeline(data, createWriteStream(spool));
      await this.adopt(key, spool);
    } finally {
      await rm(spool, { force: true });
    }
  }

  async adopt(key: string, path: string): Promise<void> {
    assertKey(key);
    const { size } = await stat(path);
    await this.put(key, () => createReadStream(path), size);
  }

  async read(key: string, range?: ByteRange): Promise<{ stream: Readable; bytes: number } | undefined> {
    assertKey(key);
    const part = range && { Range: `bytes=${range.start}-${range.end}` };
    return this.find(async ({ sdk, client }) => {
      const { Body, ContentLength } = await client.send(new sdk.GetObjectCommand({ ...this.address(key), ...part }));
      return { stream: Body as Readable, bytes: ContentLength ?? 0 };
    });
  }

  async removeAll(prefix: string): Promise<void> {
    const root = prefix.replace(/(?<!\/)\/+$/, '');
    assertKey(root);
    const keys: string[] = [];
    for await (const { key } of this.listStarting(root)) if (key === root || key.startsWith(`${root}/`)) keys.push(key);
    // One by one: stores differ in the checksum that they want of a request that names many, or have no such request.
    for (let i = 0; i < keys.length; i += deletedAtOnce)
      await Promise.all(keys.slice(i, i + deletedAtOnce).map((key) => this.remove(key)));
  }

  async *list(prefix = ''): AsyncIterable<StoredObject> {
    yield* this.listStarting(prefix && `${prefix.replace(/(?<!\/)\/+$/, '')}/`);
  }

  async localPath(key: string): Promise<string> {
    assertKey(key);
    const found = await this.find(({ sdk, client }) => client.send(new sdk.HeadObjectCommand(this.address(key))));
    if (!found) throw Object.assign(new Error(`There is no "${key}" in the storage.`), { code: 'ENOENT' });
    const name = createHash('sha256')
      .update(`${key}\n${found.ETag ?? ''}\n${found.ContentLength}`)
      .digest('hex');
    const path = join(this.cacheDir, `${name}.object`);
    const isCached = await access(path).then(
      () => true,
      () => false,
    );
    if (!isCached) await this.fetch(key, path);
    const now = new Date();
    await utimes(path, now, now).catch(() => undefined);
    return path;
  }

  async hasRoom(): Promise<boolean> {
    return true;
  }

  async check(): Promise<void> {
    await this.put(checkKey, () => new Uint8Array(0), 0);
  }

  private async put(key: string, body: () => Uint8Array | Readable, bytes: number): Promise<void> {
    for (let left = tries - 1; ; left--)
      try {
        await this.ask(({ sdk, client }) =>
          client.send(new sdk.PutObjectCommand({ ...this.address(key), Body: body(), ContentLength: bytes })),
        );
        return;
      } catch (error) {
        // The SDK does not retry a request whose body is a stream.
        if (left === 0 || !(error instanceof StorageUnavailableError) || !error.isPassing) throw error;
        await delay(200 * (tries - left));
      }
  }

  private async fetch(key: string, path: string): Promise<void> {
    await mkdir(this.cacheDir, { recursive: true });
    await this.removeUnused();
    const object = await this.read(key);
    if (!object) throw Object.assign(new Error(`There is no "${key}" in the storage.`), { code: 'ENOENT' });
    const part = `${path}.${randomBytes(6).toString('hex')}.part`;
    try {
      await pipeline(object.stream, createWriteStream(part));
      const { size } = await stat(part);
      if (size !== object.bytes) throw new StorageUnavailableError('the object broke off', true);
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  private async removeUnused(): Promise<void> {
    const names = (await readdir(this.cacheDir)).filter((name) => /\.(object|part)$/.test(name));
    const paths = names.map((name) => join(this.cacheDir, name));
    const files = await Promise.all(
      paths.map(async (path) => {
        const found = await stat(path).catch(() => undefined);
        return { path, bytes: found?.size ?? 0, idleMs: found ? Date.now() - found.mtimeMs : 0 };
      }),
    );
    let total = 0;
    for (const { path, bytes, idleMs } of files.sort((a, b) => a.idleMs - b.idleMs)) {
      total += bytes;
      const isTooMuch = total > this.cacheBytes && idleMs > inUseMs && path.endsWith('.object');
      if (isTooMuch || idleMs > unusedMs) await rm(path, { force: true });
    }
  }

  private async *listStarting(prefix: string): AsyncIterable<StoredObject> {
    let ContinuationToken: string | undefined;
    do {
      const page: Sdk.ListObjectsV2CommandOutput = await this.ask(({ sdk, client }) =>
        client.send(
          new sdk.ListObjectsV2Command({
            Bucket: this.config.bucket,
            Prefix: prefix,
            ...(ContinuationToken && { ContinuationToken }),
          }),
        ),
      );
      for (const { Key, Size, LastModified } of page.Contents ?? [])
        if (Key) yield { key: Key, bytes: Size ?? 0, modifiedAt: LastModified ?? new Date() };
      // Else objects of the remaining pages would count as absent, and those without a row as deleted.
      if (page.IsTruncated && [undefined, ContinuationToken].includes(page.NextContinuationToken))
        throw new StorageUnavailableError('the list of its objects breaks off', false);
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken);
  }

  private async remove(key: string): Promise<void> {
    await this.find(({ sdk, client }) => client.send(new sdk.DeleteObjectCommand(this.address(key))));
  }

  /** Undefined if there is no object. @throws StorageUnavailableError for every other failure */
  private async find<T>(question: Question<T>): Promise<T | undefined> {
    try {
      return await this.ask(question);
    } catch (error) {
      const { name } = (error as Error).cause as Error;
      if (name === 'NoSuchKey' || name === 'NotFound') return undefined;
      throw error;
    }
  }

  /** @throws StorageUnavailableError */
  private async ask<T>(question: Question<T>): Promise<T> {
    try {
      return await question(this.open());
    } catch (error) {
      const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
      const status = $metadata?.httpStatusCode;
      const isPassing = status === undefined || status >= 500 || status === 429;
      throw new StorageUnavailableError(`${status ? `${status} ` : ''}${name}: ${message}`, isPassing, {
        cause: error,
      });
    }
  }

  private open(): OpenedS3 {
    return (this.opened ??= clientOf(this.config));
  }

  private address(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.config.bucket, Key: key };
  }
}

/** Keys follow the rules of those in the file system. */
function assertKey(key: string): void {
  if (key === '' || key.startsWith('/') || key.split('/').some((part) => part === '..' || part === ''))
    throw new Error(`"${key}" is no key inside the storage.`);
}
