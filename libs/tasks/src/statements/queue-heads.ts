import type { TaskQueue } from '@app/domain';

/** Tasks in other queues wait for no worker. */
const workerQueues = ['drawing', 'training'] as const satisfies readonly TaskQueue[];

/**
 * In SQL: a task that waits for a worker, of sandbox keys or of all others.
 * @param task alias of the table
 */
export const waitsIn = (queues: readonly TaskQueue[], { task = 'tasks', sandbox = false } = {}): string =>
  `${task}.status = 'queued' AND ${sandbox ? '' : 'NOT '}${task}.sandbox AND ${task}.queue ${
    queues.length === 1 ? `= '${queues[0]}'` : `IN (${queues.map((queue) => `'${queue}'`).join()})`
  }`;

/** In SQL: a task that waits for a worker of either kind, and is not of a sandbox key. */
export const waitsForWorker = (task: string): string => waitsIn(workerQueues, { task });

/**
 * The oldest task of each owner and model in a queue, for WITH RECURSIVE: one index step for each, however many rows
 * there are. The order is that of `tasks_queued_model_idx`, which contains only queued rows.
 */
export const queueHeads = (queue: TaskQueue, sandbox: boolean, name = 'queue_heads'): string => {
  const isQueued = waitsIn([queue], { sandbox });
  return `${name} (owner_id, model, created_at) AS (
  (SELECT owner_id, model, created_at FROM tasks WHERE ${isQueued} ORDER BY owner_id, model, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.* FROM ${name} CROSS JOIN LATERAL (
    SELECT owner_id, model, created_at FROM tasks
    WHERE ${isQueued} AND (owner_id, model) > (${name}.owner_id, ${name}.model)
    ORDER BY owner_id, model, created_at, id LIMIT 1
  ) next
)`;
};

/** The heads of all queues that workers claim from. */
export const headsOfWorkerQueues = {
  statements: workerQueues.map((queue) => queueHeads(queue, false, `${queue}_heads`)).join(',\n'),
  names: workerQueues.map((queue) => `${queue}_heads`),
};
