/**
 * Waits between retries that double with each failure in a row, minus up to a half at random, so that many clients that
 * failed together do not return together.
 */
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

  /** Call it after a success: the next failure counts as the first. */
  reset(): void {
    this.failures = 0;
  }
}
