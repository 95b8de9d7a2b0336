import type { ModelProgress } from '@app/model-store';
import { formatBytes } from '@app/model-store';

/** The part of a terminal or a log stream that progress needs. */
export interface ProgressOutput {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

const barWidth = 24;
/** Without a terminal, per cent between two lines. */
const plainStep = 10;

/** Shows progress: one redrawn line on a terminal, a line every ten per cent elsewhere. */
export class ProgressLine {
  private drawn = false;
  private plainPart = -1;

  constructor(private readonly output: ProgressOutput) {}

  readonly report = (progress: ModelProgress): void => {
    const percent = percentOf(progress);
    if (this.output.isTTY) {
      const full = Math.round((percent / 100) * barWidth);
      const bar = `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`;
      const line = `${bar} ${describeProgress(progress)}  ${progress.file}`;
      this.output.write(`\r\u001b[K${line.slice(0, (this.output.columns ?? 80) - 1)}`);
      this.drawn = true;
      return;
    }
    const part = Math.floor(percent / plainStep);
    if (part <= this.plainPart) return;
    this.plainPart = part;
    this.output.write(`${describeProgress(progress)}\n`);
  };

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

const width = 30;

/** Without a terminal, a line for each of this many parts. */
const plainParts = 5;

/** The steps of a drawing: one redrawn line on a terminal, a few lines elsewhere. */
export class StepBar {
  private done = 0;
  private plainPart = 0;

  constructor(private readonly output: ProgressOutput) {}

  /** Shows a message before the first step. */
  say(text: string): void {
    this.output.write(this.output.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
  }

  /** Shows that `step` of `total` steps are done. It never goes back, even if steps arrive out of order. */
  show(step: number, total: number): void {
    if (step <= this.done) return;
    this.done = step;
    const part = Math.floor((step / total) * plainParts);
    if (!this.output.isTTY && part <= this.plainPart) return;
    this.plainPart = part;
    const full = Math.round((step / total) * width);
    this.say(`${'█'.repeat(full)}${'░'.repeat(width - full)} step ${step} of ${total}`);
  }

  /** Keeps the line, so that the next output is printed below it. */
  end(): void {
    if (this.output.isTTY) this.output.write('\n');
  }
}
