/** Progress of an installation. */
export interface ModelProgress {
  phase: 'download' | 'copy' | 'convert' | 'check';
  /** The file that changed last, relative to the model. */
  file: string;
  doneBytes: number;
  totalBytes: number;
  doneFiles: number;
  totalFiles: number;
  /** Over the last ten seconds; bytes that were already there do not count. */
  bytesPerSecond: number;
  /** Undefined until the speed is known. */
  secondsLeft?: number;
}

const windowMs = 10_000;
/** A speed measured over less time than this is noise. */
const minIntervalMs = 500;
const reportMs = 100;

/** Adds up the bytes of many files and reports at most ten times a second, and at the end. */
export class ProgressMeter {
  private readonly bytes = new Map<string, number>();
  private readonly samples: { at: number; moved: number }[] = [];
  private doneBytes = 0;
  private moved = 0;
  private doneFiles = 0;
  private reportedAt = -Infinity;

  constructor(
    private readonly phase: ModelProgress['phase'],
    private readonly totalBytes: number,
    private readonly totalFiles: number,
    private readonly onProgress: ((progress: ModelProgress) => void) | undefined,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.samples.push({ at: now(), moved: 0 });
  }

  /** Sets the current size of a file; smaller than before when its download started over. */
  set(file: string, bytes: number, found = false): void {
    const step = bytes - (this.bytes.get(file) ?? 0);
    this.bytes.set(file, bytes);
    this.doneBytes += step;
    if (!found && step > 0) this.moved += step;
    this.report(file);
  }

  finish(file: string): void {
    this.doneFiles++;
    this.report(file, this.doneFiles === this.totalFiles);
  }

  private report(file: string, always = false): void {
    const at = this.now();
    if (!this.onProgress || (!always && at - this.reportedAt < reportMs)) return;
    this.reportedAt = at;
    this.samples.push({ at, moved: this.moved });
    while (this.samples.length > 2 && at - this.samples[0].at > windowMs) this.samples.shift();
    const first = this.samples[0];
    const bytesPerSecond = at - first.at >= minIntervalMs ? ((this.moved - first.moved) * 1000) / (at - first.at) : 0;
    this.onProgress({
      phase: this.phase,
      file,
      doneBytes: this.doneBytes,
      totalBytes: this.totalBytes,
      doneFiles: this.doneFiles,
      totalFiles: this.totalFiles,
      bytesPerSecond,
      ...(bytesPerSecond > 0 && { secondsLeft: (this.totalBytes - this.doneBytes) / bytesPerSecond }),
    });
  }
}
