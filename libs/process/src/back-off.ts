/** Waits between tries that double with each failure in a row, less up to a half at random, so that many who failed together do not come back together. */
export class BackOff {
  private failures = 0;

  constructor(
    private readonly firstMs: number,
    private readonly longestMs: number,
  ) {}

  /** Counts a failure. @returns how long to wait before the next try, in milliseconds. */
  next(random = Math.random()): number {
    const whole = Math.min(this.longestMs, this.firstMs * 2 ** this.failures);
    if (whole < this.longestMs) this.failures++;
    return Math.round(whole * (1 - random / 2));
  }

  /** A try succeeded: the next failure counts as the first. */
  reset(): void {
    this.failures = 0;
  }
}
