/**
 * Told how long a piece of work took, also if it failed: its part of the device's milliseconds, and all that passed.
 */
export type Took = (ms: number, passedMs: number) => void;

/** Measures pieces of work in milliseconds of their device. */
export interface WorkClock {
  during: <T>(work: () => Promise<T>, took: Took) => Promise<T>;
}

/** For a device that does one piece of work at a time, or whose pieces have fixed parts of it. */
export const wallClock: WorkClock = {
  during: async (work, took) => {
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      const passedMs = performance.now() - startedAt;
      took(passedMs, passedMs);
    }
  },
};

/**
 * For a device that does several pieces of work at once: while n are under way, each has an n-th of its time. Source:
 * the virtual time of generalized processor sharing (Parekh, Gallager 1993).
 */
export class SharedClock implements WorkClock {
  private underWay = 0;
  private readAt = 0;
  /** What each piece that was under way all along has had. */
  private each = 0;

  /** @param now milliseconds of a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {}

  readonly during: WorkClock['during'] = async (work, took) => {
    this.read();
    const [before, startedAt] = [this.each, this.readAt];
    this.underWay++;
    try {
      return await work();
    } finally {
      this.read();
      this.underWay--;
      took(this.each - before, this.readAt - startedAt);
    }
  };

  private read(): void {
    const now = this.now();
    if (this.underWay > 0) this.each += (now - this.readAt) / this.underWay;
    this.readAt = now;
  }
}
