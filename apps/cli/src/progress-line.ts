import { formatBytes, type ModelProgress } from '@app/model-store';

/** The part of a terminal or a log stream that progress needs. */
export interface ProgressOutput {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

const width = 24;

/** Shows progress: one redrawn line on a terminal, elsewhere a line now and then. */
export class ProgressLine {
  private drawn = false;
  private plainPart = -1;
  private phase: ModelProgress['phase'] | undefined;

  constructor(
    private readonly output: ProgressOutput,
    private readonly parts = 10,
  ) {}

  readonly report = (progress: ModelProgress): void => {
    if (progress.phase !== this.phase) this.plainPart = -1;
    this.phase = progress.phase;
    this.show(percentOf(progress) / 100, describeProgress(progress), `  ${progress.file}`);
  };

  /** @param beside shown after the text, on a terminal only */
  show(done: number, text: string, beside = ''): void {
    if (this.output.isTTY) {
      const full = Math.round(done * width);
      const line = `${'█'.repeat(full)}${'░'.repeat(width - full)} ${text}${beside}`;
      this.output.write(`\r\u001b[K${line.slice(0, (this.output.columns ?? 80) - 1)}`);
      this.drawn = true;
      return;
    }
    const part = Math.floor(done * this.parts);
    if (part <= this.plainPart) return;
    this.plainPart = part;
    this.output.write(`${text}\n`);
  }

  /** Clears the line, so that the next output stands alone; progress may continue afterwards. */
  end(): void {
    if (this.drawn) this.output.write('\r\u001b[K');
    this.drawn = false;
    this.plainPart = -1;
  }
}

/** `43 %  1.78 of 4.13 GB  52.1 MB/s  45 s left` */
export function describeProgress(progress: ModelProgress): string {
  const { doneBytes, totalBytes, bytesPerSecond, secondsLeft } = progress;
  const parts = [
    `${String(percentOf(progress)).padStart(3)} %`,
    `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`,
  ];
  if (bytesPerSecond > 0) parts.push(`${formatBytes(bytesPerSecond)}/s`);
  if (secondsLeft !== undefined && doneBytes < totalBytes) parts.push(`${formatDuration(secondsLeft)} left`);
  return parts.join('  ');
}

const percentOf = ({ doneBytes, totalBytes }: ModelProgress): number =>
  totalBytes === 0 ? 100 : Math.floor((doneBytes / totalBytes) * 100);

/** `45 s`, `3 min 05 s`, `2 h 10 min` */
export function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  const two = (value: number): string => String(value).padStart(2, '0');
  if (minutes < 60) return `${minutes} min ${two(whole % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}
