import { createWriteStream, mkdirSync, renameSync, statSync, type WriteStream } from 'node:fs';
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

/** Level of a warning in pino, the logger of the processes. */
const warning = 40;
const names: Readonly<Record<number, string>> = { 40: 'warning: ', 50: 'error: ', 60: 'fatal: ' };
/** Fields that matter in the file but not on the terminal. */
const quiet: ReadonlySet<string> = new Set(['level', 'time', 'process', 'pid', 'hostname', 'context', 'msg', 'stack']);

/** One log line of a process, in readable form. */
export interface LogLine {
  text: string;
  isWarning: boolean;
}

/** Shortens a JSON log line. Other output (a crash) is kept and counts as a warning. */
export function readLogLine(line: string): LogLine {
  const record = parse(line);
  if (!record) return { text: line, isWarning: true };
  const level = typeof record.level === 'number' ? record.level : warning;
  const fields = Object.entries(record)
    .filter(([key]) => !quiet.has(key))
    .map(([key, value]) => `${key}=${brief(value)}`);
  return {
    text: [`${names[level] ?? ''}${String(record.msg)}`, ...fields].join(' '),
    isWarning: level >= warning,
  };
}

function brief(value: unknown): string {
  if (typeof value === 'string') return /[\s"]/.test(value) ? JSON.stringify(value) : value;
  if (value && typeof value === 'object' && 'message' in value) return JSON.stringify(value.message);
  return JSON.stringify(value);
}

function parse(line: string): { level?: unknown; msg: string } | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const record = JSON.parse(line) as { level?: unknown; msg?: unknown };
    return typeof record.msg === 'string' ? (record as { msg: string }) : undefined;
  } catch {
    return undefined;
  }
}
