import { isAlive } from '@app/process';

/** A process that is silent for this long is considered hung. */
export const hangTimeoutMs = 15_000;
const pollMs = 1_000;
/** A request that is open for this long may be lost, so another is sent. An answer counts however late it comes. */
const repollMs = 4_000;
/** If our own timer is late by this much, the machine was asleep or this process was suspended. */
const lateMs = 3_000;

/** The inputs of a detector. */
export interface HangDetectorInputs {
  ask: (url: string) => Promise<boolean>;
  /** Monotonic milliseconds, which stop while the machine sleeps. */
  now: () => number;
}

const real: HangDetectorInputs = {
  ask: (url) => isAlive(url, hangTimeoutMs),
  now: () => performance.now(),
};

/**
 * Detects that a process hangs: nothing answers at its address for `hangTimeoutMs`. It waits for the first answer,
 * since a start may take any time. After a suspension of this process, during which it could not hear an answer, the
 * time limit starts again.
 */
export class HangDetector {
  private answeredAt?: number;
  private beatAt = 0;
  private timer?: NodeJS.Timeout;
  private askedAt = 0;
  private open = 0;

  /** @param onHang called once. */
  constructor(
    private readonly url: string,
    private readonly onHang: () => void,
    private readonly options: HangDetectorInputs = real,
  ) {}

  start(): void {
    this.beatAt = this.options.now();
    this.timer = setInterval(() => this.beat(), pollMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private beat(): void {
    const now = this.options.now();
    const wasSuspended = now - this.beatAt > pollMs + lateMs;
    this.beatAt = now;
    if (wasSuspended && this.answeredAt !== undefined) this.answeredAt = now;
    if (this.answeredAt !== undefined && now - this.answeredAt >= hangTimeoutMs) {
      this.stop();
      return this.onHang();
    }
    if (this.open === 0 || now - this.askedAt >= repollMs) void this.ask();
  }

  private async ask(): Promise<void> {
    this.askedAt = this.options.now();
    this.open++;
    const answers = await this.options.ask(this.url).catch(() => false);
    this.open--;
    if (answers) this.answeredAt = this.options.now();
  }
}
