import type { DataSource } from 'typeorm';
import { DatabaseContact } from './database-contact';

/**
 * With a larger difference between this machine's clock and the database's, the queue's times and the claims go wrong.
 */
export const maxSkewMs = 2_000;
const intervalMs = 2_000;

export interface ClockWatchOptions {
  /** Milliseconds since the epoch. */
  databaseNow: () => Promise<number>;
  /** Called with one sentence each time `agrees` changes. */
  report: (sentence: string, details: { agrees: boolean; skewMs: number }) => void;
  now?: () => number;
}

/**
 * Compares this machine's clock with the database's at intervals. While they differ by more than `maxSkewMs`, nothing
 * is claimed here: the times that this process writes and compares would be wrong. Without an answer from the database
 * nothing changes.
 */
export class ClockWatch {
  readonly contact = new DatabaseContact();
  private skewMs = 0;
  private timer?: NodeJS.Timeout;
  private isChecking = false;
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
  }

  /** @returns by how many milliseconds this machine is certainly ahead; negative when it is behind. */
  async check(): Promise<number> {
    const before = this.now();
    const databaseMs = await this.options.databaseNow().catch(() => undefined);
    const after = this.now();
    if (databaseMs === undefined) return this.skewMs;
    this.contact.noteAnswer(databaseMs);
    // The database answered at some moment between these two: only the difference outside this range is certain.
    const skewMs = databaseMs < before ? before - databaseMs : Math.min(0, after - databaseMs);
    const agreed = this.agrees;
    this.skewMs = skewMs;
    if (agreed !== this.agrees) this.notify();
    return skewMs;
  }

  private notify(): void {
    const { agrees, skewMs } = this;
    this.options.report(
      agrees
        ? 'The clock agrees with the database’s again; tasks are claimed.'
        : `The clock is ${Math.abs(skewMs / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database’s; nothing is claimed until it agrees.`,
      { agrees, skewMs },
    );
  }
}

/** The database's time, in milliseconds since the epoch. */
export async function databaseNow(database: Pick<DataSource, 'query'>): Promise<number> {
  const [{ now }] = await database.query<{ now: number }[]>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
  );
  return now;
}
