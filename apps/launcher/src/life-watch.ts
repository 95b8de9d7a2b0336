import { isAlive } from '@app/process';

/** A process that is silent for so long hangs. */
export const patienceMs = 15_000;
const askEveryMs = 1_000;
/** A question that is open for so long may have been lost: another is asked beside it. An answer counts however late it comes. */
const askAgainMs = 4_000;
/** A beat of our own that comes this late means that nobody ran: the machine slept, or this process was halted. */
const lateMs = 3_000;

/** What the watch needs of the world outside. */
export interface LifeWatchOptions {
  /** Whether the process answers. */
  ask: (url: string) => Promise<boolean>;
  /** Milliseconds that never go back, and stand still while the machine sleeps. */
  now: () => number;
}

const real: LifeWatchOptions = {
  ask: (url) => isAlive(url, patienceMs),
  now: () => performance.now(),
};

/**
 * Finds out that a process hangs: nobody answers at its address for `patienceMs`. Not before the first answer, since a start may take
 * as long as it takes, and not after a pause of our own, in which nobody could have answered: then the patience begins anew.
 */
export class LifeWatch {
  private heardAt?: number;
  private beatAt = 0;
  private timer?: NodeJS.Timeout;
  private askedAt = 0;
  private open = 0;

  /** @param onSilence called once. */
  constructor(
    private readonly url: string,
    private readonly onSilence: () => void,
    private readonly options: LifeWatchOptions = real,
  ) {}

  start(): void {
    this.beatAt = this.options.now();
    this.timer = setInterval(() => this.beat(), askEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private beat(): void {
    const now = this.options.now();
    const wasAway = now - this.beatAt > askEveryMs + lateMs;
    this.beatAt = now;
    if (wasAway && this.heardAt !== undefined) this.heardAt = now;
    if (this.heardAt !== undefined && now - this.heardAt >= patienceMs) {
      this.stop();
      return this.onSilence();
    }
    if (this.open === 0 || now - this.askedAt >= askAgainMs) void this.ask();
  }

  private async ask(): Promise<void> {
    this.askedAt = this.options.now();
    this.open++;
    const answers = await this.options.ask(this.url).catch(() => false);
    this.open--;
    if (answers) this.heardAt = this.options.now();
  }
}
