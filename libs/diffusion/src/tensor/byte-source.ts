import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Random access to bytes that need not all be in memory. */
export interface ByteSource {
  readonly size: number;
  /** The byte at a position below `size`. */
  byte(position: number): number;
  /** A copy or view of the bytes from `begin` up to `end`. */
  bytes(begin: number, end: number): Buffer;
}

/** The file became shorter after it was opened. */
export class FileEndError extends Error {
  override name = 'FileEndError';
}

const PAGE_BYTES = 64 * 1024;

/** Reads an open file page by page, so that skipping a large weight costs nothing. */
export class FileSource implements ByteSource {
  private page: Buffer = Buffer.alloc(0);
  private pageBegin = 0;

  constructor(
    private readonly file: number,
    readonly size: number,
  ) {}

  byte(position: number): number {
    const index = position - this.pageBegin;
    if (index >= 0 && index < this.page.length) return this.page[index];
    this.page = this.bytes(position, Math.min(position + PAGE_BYTES, this.size));
    this.pageBegin = position;
    return this.page[0];
  }

  bytes(begin: number, end: number): Buffer {
    const inPage = begin >= this.pageBegin && end <= this.pageBegin + this.page.length;
    if (inPage) return this.page.subarray(begin - this.pageBegin, end - this.pageBegin);
    const bytes = Buffer.alloc(end - begin);
    if (readSync(this.file, bytes, 0, bytes.length, begin) !== bytes.length) {
      throw new FileEndError(`the file ends before byte ${end}`);
    }
    return bytes;
  }
}

export class BufferSource implements ByteSource {
  readonly size: number;

  constructor(private readonly buffer: Buffer) {
    this.size = buffer.length;
  }

  byte(position: number): number {
    return this.buffer[position];
  }

  bytes(begin: number, end: number): Buffer {
    return this.buffer.subarray(begin, end);
  }
}

/** Opens a file's bytes during a call. */
export async function withFile<T>(path: string, use: (source: ByteSource) => T | Promise<T>): Promise<T> {
  const file = openSync(path, 'r');
  try {
    return await use(new FileSource(file, fstatSync(file).size));
  } finally {
    closeSync(file);
  }
}
