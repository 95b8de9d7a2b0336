import type { Readable } from 'node:stream';

/** A reader holds about 200 kB of buffers and two file descriptors as long as it reads. */
const defaults = { most: 500, graceMs: 5_000 };

interface Reader {
  ownerId: string;
  startedAt: number;
  bytes: number;
  cut: () => void;
}

/**
 * Open readers of pictures. When there are too many, the owner whose pictures have the most readers loses one: readers
 * of one owner's pictures keep nobody from another's.
 */
export class PictureReaders {
  private readonly owners = new Map<string, Set<Reader>>();
  private count = 0;

  constructor(private readonly options = defaults) {}

  get size(): number {
    return this.count;
  }

  /**
   * Watches a reader until its stream is closed.
   * @param ownerId owner of the picture; the reader may be anybody who knows the URL.
   * @param cut ends it.
   */
  add(ownerId: string, stream: Readable, cut: () => void): void {
    if (this.count >= this.options.most) this.makeRoom(ownerId);
    const reader: Reader = { ownerId, startedAt: Date.now(), bytes: 0, cut };
    this.owners.set(ownerId, (this.owners.get(ownerId) ?? new Set()).add(reader));
    this.count++;
    stream.on('data', (chunk: Buffer) => (reader.bytes += chunk.length));
    stream.once('close', () => this.remove(reader));
  }

  /**
   * Cuts off the slowest reader of the owner with the most readers, the newcomer included; the first one if all have
   * only begun.
   */
  private makeRoom(newcomer: string): void {
    let most = this.owners.get(newcomer) ?? new Set<Reader>();
    let highest = most.size === 0 ? 0 : most.size + 1;
    for (const readers of this.owners.values())
      if (readers.size > highest) {
        most = readers;
        highest = readers.size;
      }
    const now = Date.now();
    const [first, ...others] = most;
    const speed = ({ bytes, startedAt }: Reader): number =>
      now - startedAt > this.options.graceMs ? bytes / (now - startedAt) : Infinity;
    this.cut(others.reduce((slowest, reader) => (speed(reader) < speed(slowest) ? reader : slowest), first));
  }

  private cut(reader: Reader): void {
    this.remove(reader);
    reader.cut();
  }

  private remove(reader: Reader): void {
    const own = this.owners.get(reader.ownerId);
    if (!own?.delete(reader)) return;
    this.count--;
    if (own.size === 0) this.owners.delete(reader.ownerId);
  }
}
