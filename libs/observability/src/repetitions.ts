/** For this long a repeated line is counted instead of written. */
const quietMs = 30_000;
/** Number of lines that are remembered; beyond that the oldest is forgotten, and would be written again. */
const maxLines = 100;

/** Counts repeated log lines, such as those of an outage, which would otherwise fill a disk. */
export class Repetitions {
  private readonly lines = new Map<string, { repeated: number; timer: NodeJS.Timeout }>();

  /**
   * Writes a line that is new. A repeated one is counted, and written once with its count when the quiet time is over.
   * @param line identifies equal lines; numbers in it are ignored.
   */
  write(line: string, write: (repeated: number) => void): void {
    const key = line.replace(/\d+/g, '#').slice(0, 500);
    const known = this.lines.get(key);
    if (known) {
      known.repeated++;
      return;
    }
    write(0);
    this.remember(key, write);
  }

  private remember(key: string, write: (repeated: number) => void): void {
    const [oldest] = this.lines.keys();
    if (this.lines.size >= maxLines) {
      clearTimeout(this.lines.get(oldest)?.timer);
      this.lines.delete(oldest);
    }
    const timer = setTimeout(() => {
      const repeated = this.lines.get(key)?.repeated ?? 0;
      this.lines.delete(key);
      if (repeated === 0) return;
      write(repeated);
      this.remember(key, write);
    }, quietMs).unref();
    this.lines.set(key, { repeated: 0, timer });
  }
}
