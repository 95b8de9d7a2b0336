import { JOB_BACK_END } from '@app/queue';
import { Metrics } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { queueNames } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Counts rows, which are the source of truth; jobs only trigger work. Each half uses an index of its own. */
const waiting = `
  SELECT 'images' AS queue, count(*)::integer AS depth,
    coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS age
  FROM (
    SELECT created_at FROM image_tasks WHERE status = 'queued' AND NOT sandbox
    UNION ALL
    SELECT created_at FROM image_tasks WHERE status = 'queued' AND sandbox
  ) queued
  UNION ALL
  SELECT 'webhooks', count(*)::integer, coalesce(extract(epoch FROM now() - min(next_attempt_at)), 0)::float8
  FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= now()`;

interface Waiting {
  queue: string;
  depth: number;
  age: number;
}

/** How much waits, for how long, and what the queues contain; read from the database at each scrape. */
@Injectable()
export class QueueMetrics {
  constructor(metrics: Metrics, dataSource: DataSource, @Inject(JOB_BACK_END) jobs: JobBackEnd) {
    const read = (): Promise<Waiting[]> => dataSource.query<Waiting[]>(waiting);
    metrics.gauge('queue_depth', { help: 'What is due and waits.', labels: ['queue'] }, async (gauge) => {
      for (const { queue, depth } of await read()) gauge.set({ queue }, depth);
    });
    metrics.gauge('queue_oldest_seconds', { help: 'How long the oldest waits.', labels: ['queue'] }, async (gauge) => {
      for (const { queue, age } of await read()) gauge.set({ queue }, age);
    });
    metrics.gauge('tasks_processing', { help: 'Tasks that workers are drawing.' }, async (gauge) => {
      const [{ count }] = await dataSource.query<{ count: number }[]>(
        `SELECT count(*)::integer AS count FROM image_tasks WHERE status = 'processing'`,
      );
      gauge.set(count);
    });
    metrics.gauge('queue_jobs', { help: 'Jobs by state.', labels: ['queue', 'state'] }, async (gauge) => {
      for (const queue of Object.values(queueNames))
        for (const [state, count] of Object.entries(await jobs.counts(queue))) gauge.set({ queue, state }, count);
    });
  }
}
