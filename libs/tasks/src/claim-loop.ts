import { BackOff } from '@app/process';

/** How soon a loop looks by itself: so long costs a wake-up that is lost. */
const intervalMs = 1_000;
const longestRestMs = 5_000;

/**
 * Claims as long as there is something to claim and room for it; then it waits until it is woken, or a second has
 * passed. Claims run one after the other: several at a time would each see room.
 */
export class ClaimLoop {
  private isDue = false;
  private isStopped = false;
  private wake = (): void => undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly work = new Set<Promise<void>>();

  /**
   * @param claim claims one task and begins to work on it, without waiting for its end. False: nothing was claimed.
   * @param onError called for each failed claim; after each in a row the loop rests longer.
   */
  constructor(
    private readonly claim: () => Promise<boolean>,
    private readonly onError: (error: Error) => void,
  ) {}

  start(): void {
    this.running = this.run();
  }

  /** There may be something to claim, or room for it. */
  look(): void {
    this.isDue = true;
    this.wake();
  }

  /** Remembers the work on what was claimed until it ends; then there may be room. The work reports its own errors. */
  begin(work: Promise<void>): void {
    const ended = work.finally(() => {
      this.work.delete(ended);
      this.look();
    });
    this.work.add(ended);
  }

  /** How much work has not ended. */
  get begun(): number {
    return this.work.size;
  }

  /** Resolves when all work that was begun has ended. */
  async finished(): Promise<void> {
    await Promise.all(this.work);
  }

  /** Resolves when no claim is on its way; work goes on. */
  async stop(): Promise<void> {
    this.isStopped = true;
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    const backOff = new BackOff(intervalMs, longestRestMs);
    while (!this.isStopped) {
      this.isDue = false;
      try {
        while (!this.isStopped && (await this.claim()));
        backOff.reset();
        if (!this.isDue) await this.pause(intervalMs);
      } catch (error) {
        this.onError(error as Error);
        await this.pause(backOff.next());
      }
    }
  }

  private async pause(ms: number): Promise<void> {
    if (this.isStopped) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = () => undefined;
  }
}
