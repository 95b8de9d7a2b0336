import { BackOff } from './back-off';

/** How soon a loop polls by itself: what a lost wake-up costs. */
const intervalMs = 1_000;
const longestRestMs = 5_000;

/**
 * Polls while there is something to do and room for it; then waits until it is woken, or for a second. Polls run one
 * after the other: several at a time would each see room.
 */
export class PollLoop {
  private isDue = false;
  private isStopped = false;
  private endPause = (): void => undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly work = new Set<Promise<void>>();

  /**
   * @param poll starts what there is to do, without waiting for its end. False: there was nothing.
   * @param onError called for each failed poll; after each in a row the loop rests longer.
   */
  constructor(
    private readonly poll: () => Promise<boolean>,
    private readonly onError: (error: Error) => void,
  ) {}

  start(): void {
    this.running = this.run();
  }

  /** There may be something to do, or room for it. */
  wake(): void {
    this.isDue = true;
    this.endPause();
  }

  /** Counts work of a poll until it ends; then there may be room. The work reports its own errors. */
  track(work: Promise<void>): void {
    const ended = work.finally(() => {
      this.work.delete(ended);
      this.wake();
    });
    this.work.add(ended);
  }

  get tracked(): number {
    return this.work.size;
  }

  async finished(): Promise<void> {
    await Promise.all(this.work);
  }

  /** Resolves when the current poll has ended; work goes on. */
  async stop(): Promise<void> {
    this.isStopped = true;
    this.endPause();
    await this.running;
  }

  private async run(): Promise<void> {
    const backOff = new BackOff(intervalMs, longestRestMs);
    while (!this.isStopped) {
      this.isDue = false;
      try {
        while (!this.isStopped && (await this.poll()));
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
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.endPause = () => undefined;
  }
}
