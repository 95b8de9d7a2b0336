import { poolOptions, statementTimeoutMs } from '@app/database';
import type { JobBackEnd, Transactions } from '@app/queue';
import { Pool } from 'pg';
import type { InsertOutcome, NewTasks } from './insert-tasks';
import { insertTasks, jobOf } from './insert-tasks';

/** At most this many requests are written together; each makes one task. */
const batchSize = 64;
/** Longest wait of a batch for a row or an owner that another transaction has locked. */
const lockTimeoutMs = 250;

interface Pending {
  work: NewTasks;
  resolve: (outcome: InsertOutcome) => void;
  reject: (error: unknown) => void;
}

/**
 * Writes what requests make in shared transactions: while one batch is being committed, requests gather for the next.
 * So concurrent requests share the cost of a commit, which is a wait for the disk, and a single request waits for
 * nothing. Owners take turns within a batch. Requests that would delay the others are written separately: a request
 * with many tasks, and each owner's requests when their batch fails or meets a lock.
 */
export class TaskIntake {
  /** Requests by owner, in order of arrival; the first owner is the next in turn. */
  private readonly waiting = new Map<string, Pending[]>();
  /** Requests of owners for whom a separate write is in progress; they wait until it is done. */
  private readonly held = new Map<string, Pending[]>();
  private isWriting = false;
  private isDue = false;
  /** Its connections give up waiting for a lock. */
  private readonly pool: Pool;

  constructor(
    databaseUrl: string,
    private readonly transactions: Transactions,
    private readonly jobs: JobBackEnd,
    private readonly onError: (error: unknown) => void,
  ) {
    this.pool = new Pool({
      connectionString: databaseUrl,
      max: 1,
      application_name: 'darkroom-intake',
      idleTimeoutMillis: 0,
      ...poolOptions({ statementTimeoutMs, lockTimeoutMs }),
    });
    this.pool.on('error', onError);
  }

  /** Resolves when the tasks, their records and their jobs are committed, or when there is no room for them. */
  insert(work: NewTasks): Promise<InsertOutcome> {
    if (this.transactions.isEnclosed) return this.insertSeparately(work);
    return new Promise((resolve, reject) => {
      const { ownerId } = work;
      const own = this.held.get(ownerId) ?? this.waiting.get(ownerId);
      if (own) own.push({ work, resolve, reject });
      else this.waiting.set(ownerId, [{ work, resolve, reject }]);
      this.begin();
    });
  }

  async close(): Promise<void> {
    await this.pool.end();
  }

  /**
   * Called when nothing is being written. Requests from the same turn of the event loop are written in two
   * halves, so that the database writes one half while this process answers and reads the other; otherwise each
   * would wait for the other.
   */
  private begin(): void {
    if (this.isWriting || this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      const count = [...this.waiting.values()].reduce((sum, own) => sum + own.length, 0);
      this.writeNext(Math.ceil(count / 2));
    });
  }

  private writeNext(most = batchSize): void {
    if (this.isWriting) return;
    const batch = this.takeBatch(Math.min(most, batchSize));
    if (batch.length === 0) return;
    this.isWriting = true;
    void this.writeTogether(batch).finally(() => {
      this.isWriting = false;
      this.writeNext();
    });
  }

  /** Takes one request of each owner in turn. A request with many tasks is written separately when its turn comes. */
  private takeBatch(most: number): Pending[] {
    const batch: Pending[] = [];
    const taken = new Set<string>();
    const later: [string, Pending[]][] = [];
    while (batch.length < most && this.waiting.size > 0) {
      const [[ownerId, own]] = this.waiting;
      this.waiting.delete(ownerId);
      if (own[0].work.tasks.length === 1) {
        batch.push(...own.splice(0, 1));
        taken.add(ownerId);
        if (own.length > 0) this.waiting.set(ownerId, own);
      } else if (taken.has(ownerId)) later.push([ownerId, own]);
      else {
        const many = own.splice(0, 1);
        this.held.set(ownerId, own);
        void this.writeSeparately(ownerId, many);
      }
    }
    for (const [ownerId, own] of later) this.waiting.set(ownerId, own);
    return batch;
  }

  private async writeTogether(batch: readonly Pending[]): Promise<void> {
    try {
      const outcomes = await this.inOneTransaction(batch.map(({ work }) => work));
      // The next batch does not wait for a back end that adds jobs after the commit.
      void this.finish(batch, outcomes);
    } catch (error) {
      if (!isRequestError(error)) return batch.forEach(({ reject }) => reject(error));
      for (const ownerId of new Set(batch.map(({ work }) => work.ownerId))) {
        this.held.set(ownerId, this.waiting.get(ownerId) ?? []);
        this.waiting.delete(ownerId);
        const own = batch.filter(({ work }) => work.ownerId === ownerId);
        void this.writeSeparately(ownerId, own);
      }
    }
  }

  private async inOneTransaction(works: readonly NewTasks[]): Promise<InsertOutcome[]> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    try {
      return await insertTasks(client, this.jobs, works);
    } catch (error) {
      if (!isRequestError(error)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** One request after the other, so that an owner who waits for a lock uses one connection. */
  private async writeSeparately(ownerId: string, own: readonly Pending[]): Promise<void> {
    for (const { work, resolve, reject } of own) await this.insertSeparately(work).then(resolve, reject);
    const since = this.held.get(ownerId) ?? [];
    this.held.delete(ownerId);
    if (since.length > 0) this.waiting.set(ownerId, since);
    this.writeNext();
  }

  private insertSeparately(work: NewTasks): Promise<InsertOutcome> {
    return this.transactions.run(async (transaction) => {
      const client = await transaction.connection();
      const [outcome] = await insertTasks(client, this.jobs, [work]);
      if (!this.jobs.rowOf && outcome.admitted) await transaction.enqueue('images', ...jobsOf([work]));
      return outcome;
    });
  }

  /** The rows are committed, so the sweeper adds a job that could not be added now. */
  private async finish(batch: readonly Pending[], outcomes: readonly InsertOutcome[]): Promise<void> {
    const { jobs } = this;
    if (!jobs.rowOf) {
      const made = jobsOf(batch.map(({ work }) => work).filter((_, index) => outcomes[index].admitted));
      if (made.length > 0) await jobs.addNow('images', made).catch(this.onError);
    }
    batch.forEach(({ resolve }, index) => resolve(outcomes[index]));
  }
}

function jobsOf(works: readonly NewTasks[]) {
  return works.flatMap(({ tasks }) => tasks.filter(({ sandbox }) => !sandbox).map(jobOf));
}

/**
 * Whether the server rejected the statement because of its content, or gave up waiting for a lock. Any other failure
 * affects every request alike.
 */
function isRequestError(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^(21|22|23|40|55P03)/.test(code);
}
