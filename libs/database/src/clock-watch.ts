import type { DataSource } from 'typeorm';
import { DatabaseContact } from './database-contact';

/**
 * Beyond this difference between a machine's clock and the database's, the queue's times and the
 * claims of tasks are wrong.
 */
export const maxSkewMs = 2_000;
const intervalMs = 2_000;

/** A consumer that can be paused, such as BullMQ's worker of a queue. */
interface Consumer {
  run(): Promise<void>;
  /** @param doNotWaitActive whether it resolves before the running jobs are done */
  pause(doNotWaitActive?: boolean): Promise<void>;
  resume(): Promise<void>;
  isRunning(): boolean;
  isPaused(): boolean;
}

export interface ClockWatchOptions {
  /** Milliseconds since the epoch as the database has it. */
  databaseNow: () => Promise<number>;
  /** Called with one sentence when the clock becomes wrong, and when it is right again. */
  report: (sentence: string, details: { agrees: boolean; skewMs: number }) => void;
  /** This machine's clock. */
  now?: () => number;
}

/**
 * Compares this machine's clock with the database's at intervals. While they differ by more than `maxSkewMs`, its
 * consumers are paused: a worker with a wrong clock would take over tasks that others hold, or never take the ones that
 * are due. If the database does not answer, nothing changes.
 */
export class ClockWatch {
  readonly contact = new DatabaseContact();
  private skewMs = 0;
  private timer?: NodeJS.Timeout;
  private isChecking = false;
  private readonly consumers = new Set<() => void>();
  private readonly now: () => number;

  constructor(private readonly options: ClockWatchOptions) {
    this.now = options.now ?? Date.now;
  }

  /** Whether this process may claim. */
  get agrees(): boolean {
    return Math.abs(this.skewMs) <= maxSkewMs;
  }

  /** Compares now, then every two seconds. */
  async start(): Promise<void> {
    await this.check();
    this.timer = setInterval(() => {
      if (this.isChecking) return;
      this.isChecking = true;
      void this.check().finally(() => (this.isChecking = false));
    }, intervalMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.consumers.clear();
  }

  /** Compares now. @returns by how many milliseconds this machine is certainly ahead; negative when it is behind. */
  async check(): Promise<number> {
    const before = this.now();
    const databaseMs = await this.options.databaseNow().catch(() => undefined);
    const after = this.now();
    if (databaseMs === undefined) return this.skewMs;
    this.contact.heard(databaseMs);
    // The database answered at some moment between these two: only the difference outside this range is certain.
    const skewMs = databaseMs < before ? before - databaseMs : Math.min(0, after - databaseMs);
    const agreed = this.agrees;
    this.skewMs = skewMs;
    if (agreed !== this.agrees) this.notify();
    return skewMs;
  }

  /**
   * Lets a worker run only while the clocks agree. A job that is already being fetched when they cease to agree still
   * arrives: its processor checks `agrees`.
   * @param worker that has not been started.
   * @returns a function to call before the worker is closed, which stops this.
   */
  addConsumer(worker: Consumer, onError: (error: unknown) => void): () => void {
    const update = (): void => {
      if (!this.agrees) worker.pause(true).catch(onError);
      else if (worker.isPaused()) worker.resume().catch(onError);
      else if (!worker.isRunning()) worker.run().catch(onError);
    };
    this.consumers.add(update);
    update();
    return () => this.consumers.delete(update);
  }

  private notify(): void {
    const { agrees, skewMs } = this;
    this.options.report(
      agrees
        ? 'The clock agrees with the database’s again; the queues are consumed.'
        : `The clock is ${Math.abs(skewMs / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database’s; nothing is taken from the queues until it agrees.`,
      { agrees, skewMs },
    );
    for (const follow of this.consumers) follow();
  }
}

/** The database's time, in milliseconds since the epoch. */
export async function databaseNow(database: Pick<DataSource, 'query'>): Promise<number> {
  const [{ now }] = await database.query<{ now: number }[]>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
  );
  return now;
}
