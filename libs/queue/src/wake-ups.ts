import { setTimeout as delay } from 'node:timers/promises';
import { type IQueueBackend, type JobsOptions, Queue, Worker } from 'bullmq';
import type { QueueConnection } from './queue-connection';

/** Name of the queue. */
export const queueName = 'tasks';
const jobName = 'look';
/** A job only says that there is something to do: nobody needs it afterwards. */
const jobOptions: JobsOptions = { removeOnComplete: true, removeOnFail: true };
/** Nobody waits for the back end. */
export const queueOptions = { skipWaitingForReady: true };
/** Pause after an error: a BullMQ worker would ask a lost back end thousands of times a second. */
const restMs = 5_000;
/** How long a silent back end may hold up the end of the process. */
const closeMs = 1_000;
const checkMs = 2_000;

type Listener = Worker<object, void, string, IQueueBackend>;
/** The queue of the jobs that say "look". */
export type LookQueue = Queue<object, void, string, object, void, string, IQueueBackend>;

/**
 * Wakes a worker when there is a task to claim, by a job whose only meaning is "look". The task's row is what counts:
 * workers also look every second, so a job that is lost costs a second.
 */
export class WakeUps {
  private asking?: Promise<unknown>;
  private isDue = false;
  private worker?: Listener;
  private isClosed = false;
  private readonly listeners = new Set<() => void>();

  /** @param onError for each error of the back end */
  constructor(
    private readonly queue: LookQueue,
    private readonly connection: QueueConnection,
    private readonly onError: (error: Error) => void,
  ) {
    queue.on('error', onError);
  }

  /** Asks a worker to look. However often it is called, at most one job follows the one that is being added. */
  ask(): void {
    if (this.isClosed) return;
    if (this.asking) {
      this.isDue = true;
      return;
    }
    this.asking = this.queue
      .add(jobName, {}, jobOptions)
      .catch(this.onError)
      .finally(() => {
        this.asking = undefined;
        if (!this.isDue) return;
        this.isDue = false;
        this.ask();
      });
  }

  /** Calls `look` for each job, until the end. */
  listen(look: () => void): void {
    this.listeners.add(look);
    this.worker ??= this.openWorker();
  }

  /** @throws if the back end does not answer */
  async check(): Promise<void> {
    const late = delay(checkMs, undefined, { ref: false }).then(() => {
      throw new Error('The queue does not answer.');
    });
    await Promise.race([this.queue.getJobCounts('waiting'), late]);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const { worker } = this;
    this.worker = undefined;
    await inTime(Promise.all([worker?.close(true), this.queue.close()]));
    await inTime(this.connection.close());
  }

  private openWorker(): Listener {
    const worker = new Worker<object, void, string, IQueueBackend>(
      queueName,
      async () => {
        for (const look of this.listeners) look();
      },
      { connection: this.connection.connection, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
      this.connection.factory,
    );
    worker.on('error', (error) => {
      this.onError(error);
      if (this.worker === worker) void this.replace(worker);
    });
    return worker;
  }

  /** After an error of its back end a BullMQ worker is of no more use. */
  private async replace(worker: Listener): Promise<void> {
    this.worker = undefined;
    await inTime(worker.close(true));
    await delay(restMs, undefined, { ref: false });
    if (!this.isClosed) this.worker = this.openWorker();
  }
}

/** Opens the queue outside of Nest. */
export function openWakeUps(connection: QueueConnection, onError: (error: Error) => void): WakeUps {
  const options = { connection: connection.connection, ...queueOptions };
  const queue = new Queue<object, void, string, object, void, string, IQueueBackend>(
    queueName,
    options,
    connection.factory,
  );
  return new WakeUps(queue, connection, onError);
}

/** Waits for at most `closeMs`, and ignores failures. */
async function inTime(work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => undefined), delay(closeMs, undefined, { ref: false })]);
}
