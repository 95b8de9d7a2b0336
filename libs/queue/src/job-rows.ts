import type { NewJob, QueueName } from './jobs';

/** A job as `insertJobs` writes it. */
export interface JobRow {
  queue: QueueName;
  id: string;
  data: object;
  opts: object;
  /** Milliseconds until it is due, and the moment from which they count. */
  delay: number;
  timestamp: number;
}

/** What BullMQ's `addBulk` would make of a job. */
export function jobRow<Q extends QueueName>(queue: Q, { id, data, delayMs = 0 }: NewJob<Q>): JobRow {
  const opts = { jobId: id, attempts: 0, ...(delayMs > 0 && { delay: delayMs }) };
  return { queue, id, data, opts, delay: delayMs, timestamp: Date.now() };
}

/**
 * Writes the jobs of a statement's rows as BullMQ's own functions do, which a test compares: its `add_flow` takes as long as all the
 * rest of the statement, most of it for a log of events that nobody here reads, and its `add_jobs_bulk` makes temporary tables. Of
 * what they do beyond, nothing concerns jobs without parents and deduplication whose ids are new.
 * @param rows a table of the statement with `JobRow`s in `job` and their order in `ordinality`.
 */
export const insertJobs = (rows: string): string => `
  INSERT INTO bullmq.job (queue, id, seq, name, state, data, opts, priority, delay_ms, max_attempts, added_at_ms, process_at_ms)
  SELECT job ->> 'queue', job ->> 'id', nextval('bullmq.job_seq'), job ->> 'queue',
    (CASE WHEN delay > 0 THEN 'delayed' ELSE 'waiting' END)::bullmq.job_state,
    job -> 'data', job -> 'opts', 0, delay, 0, added, CASE WHEN delay > 0 THEN added + delay END
  FROM (
    SELECT job, (job ->> 'delay')::bigint AS delay, (job ->> 'timestamp')::bigint AS added FROM ${rows} ORDER BY ordinality
  ) AS given_jobs`;

/** Wakes the workers of the queues to which `insertJobs` has added when the transaction commits; selects how many queues those are. */
export const tellWorkers = (rows: string): string =>
  `SELECT count(pg_notify('bullmq_jobs', queue)) FROM (SELECT DISTINCT job ->> 'queue' AS queue FROM ${rows}) AS added_to`;
