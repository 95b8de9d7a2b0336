const longestIntervalMs = 10_000;

/** Watches whether messages of a thread come while they should. */
export class SilenceWatch {
  private lastAt = 0;
  /** The time of the last message when a check found that it was too long ago. */
  private silentSince?: number;
  private timer?: NodeJS.Timeout;

  /** @param onSilent called with the time since the last message, if that is longer than `longestMs` */
  constructor(
    private readonly longestMs: number,
    private readonly onSilent: (silentMs: number) => void,
  ) {}

  start(): void {
    if (this.timer) return;
    this.reset();
    this.timer = setInterval(() => this.check(), Math.min(this.longestMs / 4, longestIntervalMs));
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  reset(): void {
    this.lastAt = performance.now();
  }

  private check(): void {
    const silentMs = performance.now() - this.lastAt;
    if (silentMs < this.longestMs) return;
    // If the whole process stood still, this timer may run before waiting messages are read: a second check decides.
    if (this.silentSince === this.lastAt) this.onSilent(silentMs);
    else this.silentSince = this.lastAt;
  }
}
