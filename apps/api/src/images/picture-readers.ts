import type { Readable } from 'node:stream';

/** What is kept of a picture for its reader: some 200 kB of buffers and two file descriptors, for as long as it reads. */
const defaults = { most: 500, silenceMs: 30_000, graceMs: 5_000 };

interface Reader {
  startedAt: number;
  bytes: number;
  heardAt: number;
  cut: () => void;
}

/**
 * Those who are reading a picture now. One that takes nothing for a while is cut off; when there are too many, the slowest makes
 * room, so that nobody is kept out by readers who take their time.
 */
export class PictureReaders {
  private readonly readers = new Set<Reader>();
  private timer?: NodeJS.Timeout;

  constructor(private readonly options = defaults) {}

  get size(): number {
    return this.readers.size;
  }

  /**
   * Watches over a reader until its stream is closed.
   * @param cut ends it.
   * @returns false when there are too many, and all of them have only begun.
   */
  add(stream: Readable, cut: () => void): boolean {
    const now = Date.now();
    if (this.readers.size >= this.options.most && !this.cutSlowest(now)) return false;
    const reader: Reader = { startedAt: now, bytes: 0, heardAt: now, cut };
    this.readers.add(reader);
    stream.on('data', (chunk: Buffer) => {
      reader.bytes += chunk.length;
      reader.heardAt = Date.now();
    });
    stream.once('close', () => this.readers.delete(reader));
    this.timer ??= setInterval(() => this.cutSilent(), this.options.silenceMs / 4).unref();
    return true;
  }

  private cutSilent(): void {
    const now = Date.now();
    for (const reader of this.readers) if (now - reader.heardAt > this.options.silenceMs) this.cut(reader);
    if (this.readers.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private cutSlowest(now: number): boolean {
    const speed = ({ bytes, startedAt }: Reader): number => bytes / (now - startedAt);
    let slowest: Reader | undefined;
    for (const reader of this.readers)
      if (now - reader.startedAt > this.options.graceMs && (!slowest || speed(reader) < speed(slowest)))
        slowest = reader;
    if (slowest) this.cut(slowest);
    return slowest !== undefined;
  }

  private cut(reader: Reader): void {
    this.readers.delete(reader);
    reader.cut();
  }
}
