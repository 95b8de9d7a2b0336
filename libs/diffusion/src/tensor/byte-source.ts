import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Random access to bytes that need not all be in memory. */
export interface ByteSource {
  readonly size: number;
  /** The byte at a position below `size`. */
  byte(position: number): number;
  /** A copy or view of the bytes from `begin` up to `end`. */
  bytes(begin: number, end: number): Buffer;
  /** The UTF-8 text from `begin` up to `end`. */
  text(begin: number, end: number): string;
}

/** The file became shorter after it was opened. */
export class FileEndError extends Error {
  override name = 'FileEndError';
}

/**
 * A page after a jump, which is mostly one over a weight to the next one's name, and the longest of pages that follow
 * each other.
 */
const PAGE_BYTES = { shortest: 4 * 1024, longest: 64 * 1024 };

/** Reads an open file page by page, so that skipping a large weight costs nothing. */
export class FileSource implements ByteSource {
  private readonly page = Buffer.allocUnsafe(PAGE_BYTES.longest);
  private pageBegin = 0;
  private pageEnd = 0;
  private nextBytes = PAGE_BYTES.shortest;

  constructor(
    private readonly file: number,
    readonly size: number,
  ) {}

  byte(position: number): number {
    if (!this.isInPage(position, position + 1)) this.turnTo(position);
    return this.page[position - this.pageBegin];
  }

  bytes(begin: number, end: number): Buffer {
    // Every byte of it is read, or it is not returned.
    const bytes = Buffer.allocUnsafe(end - begin);
    this.read(bytes, begin, end);
    return bytes;
  }

  text(begin: number, end: number): string {
    if (!this.isInPage(begin, end)) return this.bytes(begin, end).toString('utf8');
    return this.page.toString('utf8', begin - this.pageBegin, end - this.pageBegin);
  }

  private isInPage(begin: number, end: number): boolean {
    return begin >= this.pageBegin && end <= this.pageEnd;
  }

  private turnTo(position: number): void {
    const isNext = position === this.pageEnd;
    this.nextBytes = isNext ? Math.min(2 * this.nextBytes, PAGE_BYTES.longest) : PAGE_BYTES.shortest;
    const end = Math.min(position + this.nextBytes, this.size);
    this.pageEnd = this.pageBegin = position;
    this.read(this.page, position, end);
    this.pageEnd = end;
  }

  private read(into: Buffer, begin: number, end: number): void {
    if (readSync(this.file, into, 0, end - begin, begin) !== end - begin)
      throw new FileEndError(`the file ends before byte ${end}`);
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

  text(begin: number, end: number): string {
    return this.buffer.toString('utf8', begin, end);
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
