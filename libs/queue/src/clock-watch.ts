import type { Worker } from 'bullmq';
import type { DataSource } from 'typeorm';

/** The queue's times and the claims of tasks are wrong on a machine that is further from the database's time than this. */
export const maxSkewMs = 2_000;
const intervalMs = 10_000;

/** What consumes a queue and can be halted. */
type Consumer = Pick<Worker, 'run' | 'pause' | 'resume' | 'isRunning' | 'isPaused'>;

export interface ClockWatchOptions {
  /** Milliseconds since the epoch as the database has it. */
  databaseNow: () => Promise<number>;
  /** Told in one sentence when the clock goes wrong, and when it is right again. */
  say: (sentence: string, details: { agrees: boolean; skewMs: number }) => void;
  /** This machine's clock. */
  now?: () => number;
}

/**
 * Compares this machine's clock with the database's at intervals. While they are further apart than `maxSkewMs`, the queues that
 * it governs are not consumed: a worker in another time would take over what others hold, or never what is due.
 * A database that cannot be asked changes nothing.
 */
export class ClockWatch {
  private skewMs = 0;
  private timer?: NodeJS.Timeout;
  private readonly followers = new Set<() => void>();
  private readonly now: () => number;

  constructor(private readonly options: ClockWatchOptions) {
    this.now = options.now ?? Date.now;
  }

  /** Whether this process may claim. */
  get agrees(): boolean {
    return Math.abs(this.skewMs) <= maxSkewMs;
  }

  /** Compares once, then every ten seconds. */
  async start(): Promise<void> {
    await this.check();
    this.timer = setInterval(() => void this.check(), intervalMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.followers.clear();
  }

  /** Compares now. @returns by how much this machine is ahead, in milliseconds, as far as that can be told. */
  async check(): Promise<number> {
    const before = this.now();
    const theirs = await this.options.databaseNow().catch(() => undefined);
    const after = this.now();
    if (theirs === undefined) return this.skewMs;
    // The database answered at some moment between the two: only what lies outside of them is certain.
    const skewMs = theirs < before ? before - theirs : Math.min(0, after - theirs);
    const agreed = this.agrees;
    this.skewMs = skewMs;
    if (agreed !== this.agrees) this.tell();
    return skewMs;
  }

  /**
   * Has a queue consumed as long as the clocks agree. A job that was being fetched when they ceased to comes nevertheless: its
   * processor looks at `agrees`.
   * @param worker that has not been started.
   * @returns a function that ends the care, before the worker is closed.
   */
  govern(worker: Consumer, onError: (error: unknown) => void): () => void {
    const follow = (): void => {
      if (!this.agrees) worker.pause(true).catch(onError);
      else if (worker.isPaused()) worker.resume().catch(onError);
      else if (!worker.isRunning()) worker.run().catch(onError);
    };
    this.followers.add(follow);
    follow();
    return () => this.followers.delete(follow);
  }

  private tell(): void {
    const { agrees, skewMs } = this;
    this.options.say(
      agrees
        ? 'The clock agrees with the database’s again; the queues are consumed.'
        : `The clock is ${Math.abs(skewMs / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database’s; nothing is taken from the queues until it agrees.`,
      { agrees, skewMs },
    );
    for (const follow of this.followers) follow();
  }
}

/** The database's time, in milliseconds since the epoch. */
export async function databaseNow(database: Pick<DataSource, 'query'>): Promise<number> {
  const [{ now }] = await database.query<{ now: number }[]>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
  );
  return now;
}
