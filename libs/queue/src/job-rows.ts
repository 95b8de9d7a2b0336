import type { NewJob, QueueName } from './jobs';

/** A job as the database's function `insert_tasks` writes it. */
export interface JobRow {
  queue: QueueName;
  id: string;
  data: object;
  opts: object;
  /** Milliseconds until it is due, counted from `timestamp`. */
  delay: number;
  timestamp: number;
}

/** The row that BullMQ's `addBulk` would make of a job. */
export function jobRow<Q extends QueueName>(queue: Q, { id, data, delayMs = 0 }: NewJob<Q>): JobRow {
  const opts = { jobId: id, attempts: 0, ...(delayMs > 0 && { delay: delayMs }) };
  return { queue, id, data, opts, delay: delayMs, timestamp: Date.now() };
}
