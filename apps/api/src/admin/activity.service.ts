import { invalidParameter } from '@app/domain';
import type { ActivityDto, ActivityGroup, ActivityQueryDto } from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Of an answer. */
const maxRows = 20_000;

const columns: Readonly<Record<ActivityGroup, string>> = {
  key: 'task.owner_id',
  user: 'task.end_user',
  model: 'task.model',
  finetune: `CASE task.kind WHEN 'training' THEN task.id ELSE drawing.finetune_id END`,
};

/** Each key's tasks are a range of `tasks_completed_idx`. Parameters: how many days, hour or day. */
const statement = (group: ActivityGroup | undefined): string => `
SELECT date_trunc($2, task.completed_at, 'UTC') AS time, ${group ? `${columns[group]} AS "${group}",` : ''}
  coalesce(sum(drawing.num_images) FILTER (WHERE task.status = 'succeeded'), 0)::integer AS images,
  (count(*) FILTER (WHERE task.status = 'succeeded'))::integer AS succeeded,
  (count(*) FILTER (WHERE task.status = 'failed'))::integer AS failed,
  (count(*) FILTER (WHERE task.status = 'canceled'))::integer AS canceled,
  round(coalesce(sum(task.compute_seconds), 0)::numeric, 3)::double precision AS compute_seconds,
  round(sum(extract(epoch FROM coalesce(task.started_at, task.completed_at) - task.created_at))::numeric, 3)::double precision AS queue_seconds
FROM api_keys caller CROSS JOIN LATERAL (
  SELECT * FROM tasks WHERE owner_id = caller.id AND NOT sandbox
    AND completed_at >= date_trunc($2, now() - $1 * interval '1 day', 'UTC')
) task LEFT JOIN drawings drawing ON drawing.id = task.id
GROUP BY 1${group ? ', 2' : ''} ORDER BY 1 DESC${group ? ', 2' : ''} LIMIT ${maxRows + 1}`;

/** What ended when, as far as its records are still there. */
@Injectable()
export class ActivityService {
  constructor(private readonly dataSource: DataSource) {}

  /** @throws InvalidError for too many rows */
  async read({ per, group_by: group, span }: ActivityQueryDto): Promise<ActivityDto[]> {
    const rows = await this.dataSource.query<(Omit<ActivityDto, 'time'> & { time: Date })[]>(statement(group), [
      span,
      per,
    ]);
    if (rows.length > maxRows) {
      const cure = per === 'hour' ? 'ask for days, or leave it out' : 'leave it out';
      throw invalidParameter('group_by', `leads to more than ${maxRows} rows; ${cure}`);
    }
    return rows.map(({ time, ...row }) => ({ time: time.toISOString(), ...row }));
  }
}
