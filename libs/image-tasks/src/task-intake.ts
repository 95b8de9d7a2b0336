import { poolOptions, statementTimeoutMs } from '@app/database';
import type { JobBackEnd, Transactions } from '@app/queue';
import { Pool } from 'pg';
import type { InsertOutcome, NewTasks } from './insert-tasks';
import { insertTasks, jobOf } from './insert-tasks';

/** Requests that are written together, at most; each makes one task. */
const batchSize = 64;
/** As long a batch waits for a row or an owner that somebody else has locked. */
const lockTimeoutMs = 250;

interface Pending {
  work: NewTasks;
  resolve: (outcome: InsertOutcome) => void;
  reject: (error: unknown) => void;
}

/**
 * Writes what requests make, together with what others make at the same time: while one batch is being committed, requests gather for
 * the next. So the cost of a commit, which is a wait for the disk, is shared by all who came meanwhile, and a request that comes alone
 * waits for nothing. Owners take turns within a batch. Whoever is in the way of the others is taken out and written apart: a request of
 * many tasks, and, where a batch fails or meets a lock, each owner for itself.
 */
export class TaskIntake {
  /** Of each owner in the order of arrival; the owner whose turn is next is the first. */
  private readonly waiting = new Map<string, Pending[]>();
  /** The same of owners for whom something is written apart: it waits until that is done. */
  private readonly held = new Map<string, Pending[]>();
  private isWriting = false;
  private isDue = false;
  /** Its connection gives up waiting for a lock. */
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
    if (this.transactions.isEnclosed) return this.insertApart(work);
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
   * Nothing is being written. What came in the same turn of the event loop is written in two halves, so that from then on the database
   * writes one half while this process answers and reads the other; else each would wait for the other.
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

  /** One request of each owner, again and again. A request of many tasks goes apart when it is its turn. */
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
        void this.writeApart(ownerId, many);
      }
    }
    for (const [ownerId, own] of later) this.waiting.set(ownerId, own);
    return batch;
  }

  private async writeTogether(batch: readonly Pending[]): Promise<void> {
    try {
      const outcomes = await this.inOneTransaction(batch.map(({ work }) => work));
      // The next batch does not wait for a back end whose jobs are added after the commit.
      void this.finish(batch, outcomes);
    } catch (error) {
      if (!isOfOneRequest(error)) return batch.forEach(({ reject }) => reject(error));
      for (const ownerId of new Set(batch.map(({ work }) => work.ownerId))) {
        this.held.set(ownerId, this.waiting.get(ownerId) ?? []);
        this.waiting.delete(ownerId);
        const own = batch.filter(({ work }) => work.ownerId === ownerId);
        void this.writeApart(ownerId, own);
      }
    }
  }

  private async inOneTransaction(works: readonly NewTasks[]): Promise<InsertOutcome[]> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    try {
      return await insertTasks(client, this.jobs, works);
    } catch (error) {
      if (!isOfOneRequest(error)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** One request after the other, so that an owner who waits for a lock holds one connection. */
  private async writeApart(ownerId: string, own: readonly Pending[]): Promise<void> {
    for (const { work, resolve, reject } of own) await this.insertApart(work).then(resolve, reject);
    const since = this.held.get(ownerId) ?? [];
    this.held.delete(ownerId);
    if (since.length > 0) this.waiting.set(ownerId, since);
    this.writeNext();
  }

  private insertApart(work: NewTasks): Promise<InsertOutcome> {
    return this.transactions.run(async (transaction) => {
      const client = await transaction.connection();
      const [outcome] = await insertTasks(client, this.jobs, [work]);
      if (!this.jobs.rowOf && outcome.admitted)
        for (const queue of ['images', 'sandbox'] as const) {
          const own = work.tasks.map(jobOf).filter(([name]) => name === queue);
          await transaction.enqueue(queue, ...own.map(([, job]) => job));
        }
      return outcome;
    });
  }

  /** The rows are committed: a job that could not be added now is the sweeper's to add. */
  private async finish(batch: readonly Pending[], outcomes: readonly InsertOutcome[]): Promise<void> {
    const { jobs } = this;
    if (!jobs.rowOf) {
      const made = batch.flatMap(({ work }, index) => (outcomes[index].admitted ? work.tasks.map(jobOf) : []));
      for (const queue of ['images', 'sandbox'] as const) {
        const own = made.filter(([name]) => name === queue).map(([, job]) => job);
        if (own.length > 0) await jobs.addNow(queue, own).catch(this.onError);
      }
    }
    batch.forEach(({ resolve }, index) => resolve(outcomes[index]));
  }
}

/** Whether the server refused the statement for something in it, or gave up waiting; else nobody could have been served. */
function isOfOneRequest(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^(21|22|23|40|55P03)/.test(code);
}
