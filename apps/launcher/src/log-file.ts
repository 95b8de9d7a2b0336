import type { WriteStream } from 'node:fs';
import { createWriteStream, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** At this size a file is renamed to `<file>.1`, which replaces the previous one: at most two files exist. */
const limitBytes = 16 * 2 ** 20;

/** A log file of limited size. */
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
    // On a full disk log lines are lost, but pictures are still drawn.
    stream.on('error', () => undefined);
    return stream;
  }
}
