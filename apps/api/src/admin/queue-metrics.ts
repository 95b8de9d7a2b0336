import { type Config, CONFIG } from '@app/config';
import { Metrics } from '@app/observability';
import { waitsForWorker } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Each half uses an index of its own. */
const waiting = `
  SELECT 'images' AS queue, count(*)::integer AS depth,
    coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS age
  FROM (
    SELECT created_at FROM tasks WHERE status = 'queued' AND NOT sandbox
    UNION ALL
    SELECT created_at FROM tasks WHERE status = 'queued' AND sandbox
  ) queued
  UNION ALL
  SELECT 'webhooks', count(*)::integer, coalesce(extract(epoch FROM now() - min(next_attempt_at)), 0)::float8
  FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= now()`;

/**
 * How many tasks a worker with room may take now, and how long the oldest of them has waited. Without tasks of sandbox
 * keys, of keys at their limit of tasks in progress, those that wait for a training, and those whose next attempt is
 * not due. $1: tasks of a key that may be drawn at once, $2: that may be trained; 0: no limit.
 */
const takeable = `
  WITH held AS (
    SELECT owner_id, queue, count(*)::integer AS count FROM tasks WHERE status = 'processing' GROUP BY owner_id, queue
  ), queued AS (
    SELECT task.owner_id, task.queue, count(*)::integer AS count, min(task.created_at) AS oldest,
      CASE task.queue WHEN 'training' THEN $2::integer ELSE coalesce(max(caller.max_concurrent), $1::integer) END AS most
    FROM tasks task LEFT JOIN api_keys caller ON caller.id = task.owner_id
    WHERE ${waitsForWorker('task')}
      AND (task.not_before IS NULL OR task.not_before <= now())
    GROUP BY task.owner_id, task.queue
  ), takeable AS (
    SELECT queued.queue, queued.oldest,
      CASE queued.most WHEN 0 THEN queued.count ELSE least(queued.count, queued.most - coalesce(held.count, 0)) END AS count
    FROM queued LEFT JOIN held ON held.owner_id = queued.owner_id AND held.queue = queued.queue
  )
  SELECT queues.queue, coalesce(sum(takeable.count), 0)::integer AS count,
    coalesce(extract(epoch FROM now() - min(takeable.oldest)), 0)::float8 AS age
  FROM (VALUES ('drawing'), ('training')) AS queues (queue)
  LEFT JOIN takeable ON takeable.queue = queues.queue AND takeable.count > 0
  GROUP BY queues.queue`;

const openTasks = `
  SELECT queues.queue, states.state, count(task.id)::integer AS count
  FROM (VALUES ('images', false), ('sandbox', true)) AS queues (queue, sandbox)
  CROSS JOIN (VALUES ('waiting'), ('delayed'), ('active')) AS states (state)
  LEFT JOIN tasks task ON task.status IN ('queued', 'processing') AND task.sandbox = queues.sandbox
    AND states.state = CASE
      WHEN task.status = 'processing' THEN 'active' WHEN task.not_before > now() THEN 'delayed' ELSE 'waiting' END
  GROUP BY 1, 2`;

const processing = `
  SELECT queues.queue, count(task.id)::integer AS count FROM (VALUES ('drawing'), ('training')) AS queues (queue)
  LEFT JOIN tasks task ON task.queue = queues.queue AND task.status = 'processing' GROUP BY 1`;

interface OpenTasks {
  queue: string;
  state: string;
  count: number;
}

interface Waiting {
  queue: string;
  depth: number;
  age: number;
}

interface Takeable {
  queue: string;
  count: number;
  age: number;
}

/** How much waits, for how long, and what is being done; read from the database at each scrape. */
@Injectable()
export class QueueMetrics {
  constructor(metrics: Metrics, dataSource: DataSource, @Inject(CONFIG) config: Config) {
    const read = askedTogether(() => dataSource.query<Waiting[]>(waiting));
    metrics.gauge('queue_depth', { help: 'What is due and waits.', labels: ['queue'] }, async (gauge) => {
      for (const { queue, depth } of await read()) gauge.set({ queue }, depth);
    });
    metrics.gauge('queue_oldest_seconds', { help: 'How long the oldest waits.', labels: ['queue'] }, async (gauge) => {
      for (const { queue, age } of await read()) gauge.set({ queue }, age);
    });
    const limits = [config.maxConcurrentPerKey, config.maxTrainingsPerKey];
    const readTakeable = askedTogether(() => dataSource.query<Takeable[]>(takeable, limits));
    const countHelp = 'Tasks that a worker may take now.';
    metrics.gauge('takeable_tasks', { help: countHelp, labels: ['queue'] }, async (gauge) => {
      for (const { queue, count } of await readTakeable()) gauge.set({ queue }, count);
    });
    const ageHelp = 'How long the oldest task waits that a worker may take now.';
    metrics.gauge('takeable_oldest_seconds', { help: ageHelp, labels: ['queue'] }, async (gauge) => {
      for (const { queue, age } of await readTakeable()) gauge.set({ queue }, age);
    });
    const processingHelp = 'Tasks that workers have in hand: pictures that are drawn, and trainings.';
    metrics.gauge('tasks_processing', { help: processingHelp, labels: ['queue'] }, async (gauge) => {
      const found = await dataSource.query<{ queue: string; count: number }[]>(processing);
      for (const { queue, count } of found) gauge.set({ queue }, count);
    });
    metrics.gauge('queue_jobs', { help: 'Open tasks by state.', labels: ['queue', 'state'] }, async (gauge) => {
      for (const { queue, state, count } of await dataSource.query<OpenTasks[]>(openTasks))
        gauge.set({ queue, state }, count);
    });
  }
}

/** One query for all who ask while it runs, as the gauges of a scrape do. */
function askedTogether<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => (asked ??= ask().finally(() => (asked = undefined)));
}
