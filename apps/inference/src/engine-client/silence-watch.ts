const longestIntervalMs = 10_000;

/** Watches whether a thread says something while it should. */
export class SilenceWatch {
  private heardAt = 0;
  /** The time of the last word when a check found that it was too long ago. */
  private silentSince?: number;
  private timer?: NodeJS.Timeout;

  /** @param onSilent told for how long it has said nothing, if that is longer than `longestMs` */
  constructor(
    private readonly longestMs: number,
    private readonly onSilent: (silentMs: number) => void,
  ) {}

  start(): void {
    if (this.timer) return;
    this.heard();
    this.timer = setInterval(() => this.check(), Math.min(this.longestMs / 4, longestIntervalMs));
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  heard(): void {
    this.heardAt = performance.now();
  }

  private check(): void {
    const silentMs = performance.now() - this.heardAt;
    if (silentMs < this.longestMs) return;
    // Where this whole process stood still, what the thread said is read after this timer: the next check tells.
    if (this.silentSince === this.heardAt) this.onSilent(silentMs);
    else this.silentSince = this.heardAt;
  }
}
