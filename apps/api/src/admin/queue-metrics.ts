import { Metrics } from '@app/observability';
import { Injectable } from '@nestjs/common';
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

const openTasks = `
  SELECT queues.queue, states.state, count(task.id)::integer AS count
  FROM (VALUES ('images', false), ('sandbox', true)) AS queues (queue, sandbox)
  CROSS JOIN (VALUES ('waiting'), ('delayed'), ('active')) AS states (state)
  LEFT JOIN tasks task ON task.status IN ('queued', 'processing') AND task.sandbox = queues.sandbox
    AND states.state = CASE
      WHEN task.status = 'processing' THEN 'active' WHEN task.not_before > now() THEN 'delayed' ELSE 'waiting' END
  GROUP BY 1, 2`;

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

/** How much waits, for how long, and what is being done; read from the database at each scrape. */
@Injectable()
export class QueueMetrics {
  constructor(metrics: Metrics, dataSource: DataSource) {
    const read = (): Promise<Waiting[]> => dataSource.query<Waiting[]>(waiting);
    metrics.gauge('queue_depth', { help: 'What is due and waits.', labels: ['queue'] }, async (gauge) => {
      for (const { queue, depth } of await read()) gauge.set({ queue }, depth);
    });
    metrics.gauge('queue_oldest_seconds', { help: 'How long the oldest waits.', labels: ['queue'] }, async (gauge) => {
      for (const { queue, age } of await read()) gauge.set({ queue }, age);
    });
    metrics.gauge('tasks_processing', { help: 'Tasks that workers are drawing.' }, async (gauge) => {
      const [{ count }] = await dataSource.query<{ count: number }[]>(
        `SELECT count(*)::integer AS count FROM tasks WHERE status = 'processing'`,
      );
      gauge.set(count);
    });
    metrics.gauge('queue_jobs', { help: 'Open tasks by state.', labels: ['queue', 'state'] }, async (gauge) => {
      for (const { queue, state, count } of await dataSource.query<OpenTasks[]>(openTasks))
        gauge.set({ queue, state }, count);
    });
  }
}
