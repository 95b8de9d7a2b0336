/** A cache of recently made files, within a budget of bytes; the least recently used is dropped first. */
export class RecentFiles {
  private readonly files = new Map<string, Uint8Array>();
  private bytes = 0;

  constructor(private readonly maxBytes: number) {}

  get(key: string): Uint8Array | undefined {
    const file = this.files.get(key);
    if (file) this.touch(key, file);
    return file;
  }

  set(key: string, file: Uint8Array): void {
    if (file.length > this.maxBytes) return;
    this.bytes += file.length - (this.files.get(key)?.length ?? 0);
    this.touch(key, file);
    for (const [oldest, { length }] of this.files) {
      if (this.bytes <= this.maxBytes) return;
      this.files.delete(oldest);
      this.bytes -= length;
    }
  }

  private touch(key: string, file: Uint8Array): void {
    this.files.delete(key);
    this.files.set(key, file);
  }
}
