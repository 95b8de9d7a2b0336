import type { WriteStream } from 'node:fs';
import { createWriteStream, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** At this size a file is set aside as `<file>.1`, which replaces the one before: two files at most. */
const limitBytes = 16 * 2 ** 20;

/** A log that does not grow without end. */
export class LogFile {
  private stream: WriteStream;
  private bytes: number;

  constructor(readonly path: string) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.stream = this.open();
  }

  write(line: string): void {
    if (this.bytes >= limitBytes) {
      this.stream.end();
      renameSync(this.path, `${this.path}.1`);
      this.bytes = 0;
      this.stream = this.open();
    }
    this.bytes += Buffer.byteLength(line) + 1;
    this.stream.write(`${line}\n`);
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.stream.end(resolve));
  }

  private open(): WriteStream {
    const stream = createWriteStream(this.path, { flags: 'a', mode: 0o600 });
    // A full disk loses log lines, not pictures.
    stream.on('error', () => undefined);
    return stream;
  }
}
