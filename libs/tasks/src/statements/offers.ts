import { silentMs, workerBeatMs } from '../live-workers';
import { queueHeads } from './queue-heads';

/**
 * A task is offered to every worker only if it has waited this long and no worker has had its model for this long: a
 * worker that restarts, and one that is about to find a new model, must not cost a picture.
 */
export const undrawableAfterMs = 15_000;

/**
 * In SQL: whether no worker has had the task's model for `undrawableAfterMs`. A worker names its models every
 * `workerBeatMs`; one of an older version names none and may have any.
 */
const isUndrawable = (
  task: string,
): string => `${task}.created_at < now() - interval '${undrawableAfterMs} ms' AND NOT EXISTS (
  SELECT FROM drawable_models seen
  WHERE seen.name = ${task}.model AND seen.drawable_at > now() - interval '${workerBeatMs + undrawableAfterMs} ms'
) AND NOT EXISTS (SELECT FROM inference_workers WHERE models IS NULL AND heartbeat_at > now() - interval '${silentMs} ms')`;

/**
 * In SQL: whether a task is offered to a worker: it can draw the task's model, or no worker can.
 * @param models parameter with the worker's models (null: any); the next one says whether it takes what none can draw
 */
export const isOffered = (task: string, models: number): string =>
  `($${models}::text[] IS NULL OR ${task}.model = ANY ($${models}) OR $${models + 1}::boolean AND ${isUndrawable(task)})`;

/** The task that a ticket claimed before. Parameters: the ticket; those of `isOffered`. */
export const ownStatement = `
SELECT id, ${isOffered('task', 2)} AS offered FROM image_tasks task WHERE ticket = $1 AND status = 'processing' LIMIT 1`;

/** How many tasks wait, counted up to $1, and whether one of them is of none of the models $2 (null: any). */
export const countWaitingStatement = `
WITH RECURSIVE ${queueHeads}
SELECT (
  SELECT count(*)::integer FROM (SELECT 1 FROM image_tasks WHERE status = 'queued' AND NOT sandbox LIMIT $1) counted
) AS count, $2::text[] IS NOT NULL AND EXISTS (SELECT FROM queue_heads WHERE model <> ALL ($2)) AS "forOthers"`;
