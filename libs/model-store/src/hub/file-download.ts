import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { HubClient } from './hub-client';
import type { HubFile } from './hub-listing';
import { createReadStream } from 'node:fs';
import { dirname } from 'node:path';
import { explainDiskErrors, ModelStoreError, systemCode } from '../model-store-error';
import { bodyOf, TransientError } from './http-get';

/** How often a file with a wrong checksum is downloaded before it counts as corrupt. */
const maxCorrupt = 2;

/** Receives the number of bytes so far; `found` when they were on the disk before this run. */
type BytesListener = (bytes: number, found: boolean) => void;

/**
 * Downloads one file of a repository to `target`, over as many connections as it takes. The bytes are kept beside it,
 * so that the next run can resume; the file gets its name when its checksum is right.
 */
export class FileDownload {
  private readonly incomplete: string;
  private digest: Digest;
  private offset = 0;
  private furthest = 0;
  /** False once the server has answered a range request wrongly; then no more are made. */
  private supportsRanges = true;
  private corrupt = 0;

  constructor(
    private readonly client: HubClient,
    private readonly repository: string,
    private readonly commit: string,
    private readonly file: HubFile,
    private readonly target: string,
    private readonly onBytes: BytesListener,
  ) {
    this.incomplete = incompletePath(target, file);
    this.digest = new Digest(file);
  }

  /**
   * @returns sha256 of the content in hexadecimal
   * @throws ModelStoreError `HubRefused`, `HubUnreachable`, `CorruptFile` or `NoSpace`
   */
  async run(signal: AbortSignal): Promise<string> {
    const present = await this.checkPresent(signal);
    if (present) return present;
    await explainDiskErrors(mkdir(dirname(this.target), { recursive: true }));
    await this.resume(signal);
    let before = this.furthest;
    await this.client.withRetries(
      `${this.file.path} of ${this.repository}`,
      signal,
      async () => {
        before = this.furthest;
        await this.attempt(signal);
      },
      () => this.furthest > before,
    );
    return this.digest.sha256;
  }

  /** The sha256 of a file that an earlier run finished, if it is still valid. */
  private async checkPresent(signal: AbortSignal): Promise<string | undefined> {
    const size = await sizeOf(this.target);
    if (size === undefined) return undefined;
    const digest = new Digest(this.file);
    if (size === this.file.size) {
      await digest.updateFrom(this.target, size, signal);
      if (digest.matches()) {
        this.onBytes(size, true);
        return digest.sha256;
      }
    }
    await rm(this.target);
    return undefined;
  }

  /** Resumes what an earlier run left of the same content. */
  private async resume(signal: AbortSignal): Promise<void> {
    const size = (await sizeOf(this.incomplete)) ?? 0;
    if (size === 0 || size > this.file.size) return;
    await this.digest.updateFrom(this.incomplete, size, signal);
    this.offset = this.furthest = size;
    this.onBytes(size, true);
  }

  private async attempt(signal: AbortSignal): Promise<void> {
    if (this.offset < this.file.size || this.file.size === 0) await this.receive(await this.request(signal));
    if (!this.digest.matches()) {
      this.restart();
      if (++this.corrupt < maxCorrupt) throw new TransientError('its checksum is wrong');
      await rm(this.incomplete, { force: true });
      throw new ModelStoreError(
        'CorruptFile',
        `${this.file.path} of ${this.repository} arrived ${maxCorrupt} times with the wrong checksum.`,
      );
    }
    await explainDiskErrors(rename(this.incomplete, this.target));
  }

  /**
   * Requests the missing part and checks that the response contains just that.
   * @returns a response whose body begins at `offset`.
   */
  private async request(signal: AbortSignal): Promise<IncomingMessage> {
    if (!this.supportsRanges) this.restart();
    const headers: Record<string, string> = this.offset > 0 ? { range: `bytes=${this.offset}-` } : {};
    const response = await this.client.openFile(this.repository, this.commit, this.file.path, headers, signal);
    const { statusCode, headers: answer } = response;
    if (statusCode === 206 && this.offset > 0 && this.isExpectedRange(answer['content-range'])) return response;
    const length = answer['content-length'];
    if (statusCode === 200 && (length === undefined || Number(length) === this.file.size)) {
      // The whole file, also where the server does not support ranges.
      this.restart();
      return response;
    }
    response.destroy();
    this.supportsRanges = false;
    throw new TransientError(`the server sends something else than what was asked for (${statusCode})`);
  }

  /** Whether a Content-Range begins at our offset; a server may send less than the whole rest. */
  private isExpectedRange(contentRange: string | undefined): boolean {
    const [, from, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(contentRange ?? '') ?? [];
    return Number(from) === this.offset && (total === '*' || Number(total) === this.file.size);
  }

  private async receive(response: IncomingMessage): Promise<void> {
    const handle = await explainDiskErrors(open(this.incomplete, this.offset > 0 ? 'r+' : 'w'));
    try {
      for await (const chunk of bodyOf(response)) await this.write(handle, chunk);
      await explainDiskErrors(handle.sync());
    } finally {
      await handle.close();
    }
    if (this.offset < this.file.size)
      throw new TransientError(`the connection ended after ${this.offset} of ${this.file.size} bytes`);
  }

  private async write(handle: FileHandle, chunk: Buffer): Promise<void> {
    if (this.offset + chunk.length > this.file.size) {
      this.restart();
      throw new TransientError('the server sends more than the file has');
    }
    for (let written = 0; written < chunk.length;) {
      const rest = chunk.length - written;
      const { bytesWritten } = await explainDiskErrors(handle.write(chunk, written, rest, this.offset + written));
      written += bytesWritten;
    }
    this.digest.update(chunk);
    this.offset += chunk.length;
    this.furthest = Math.max(this.furthest, this.offset);
    this.onBytes(this.offset, false);
  }

  private restart(): void {
    this.digest = new Digest(this.file);
    this.offset = 0;
    this.onBytes(0, false);
  }
}

/**
 * Checks content as a stream: sha256 for every file, and git's blob id (a sha1) for a file without another checksum.
 */
class Digest {
  private readonly sha256Hash = createHash('sha256');
  private readonly blobHash: Hash | undefined;
  private result: string | undefined;

  constructor(private readonly file: HubFile) {
    if (!file.sha256) this.blobHash = createHash('sha1').update(`blob ${file.size}\0`);
  }

  get sha256(): string {
    return (this.result ??= this.sha256Hash.digest('hex'));
  }

  update(chunk: Buffer): void {
    this.sha256Hash.update(chunk);
    this.blobHash?.update(chunk);
  }

  async updateFrom(path: string, bytes: number, signal: AbortSignal): Promise<void> {
    if (bytes === 0) return;
    for await (const chunk of createReadStream(path, { end: bytes - 1, highWaterMark: 1 << 20, signal }))
      this.update(chunk as Buffer);
  }

  /** Whether all the content is the expected file. Call it once, at the end. */
  matches(): boolean {
    return this.blobHash ? this.blobHash.digest('hex') === this.file.blobId : this.sha256 === this.file.sha256;
  }
}

/** Where the bytes of a download are until they are complete; another content of the same file has another path. */
export function incompletePath(target: string, { sha256, blobId }: HubFile): string {
  return `${target}.${(sha256 ?? blobId)!.slice(0, 12)}.incomplete`;
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
