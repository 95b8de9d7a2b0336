import type { FailureDto } from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { type List, listByTime, type TimedRow } from '../http/list';

/** Both statements walk `tasks_failed_idx`. */
const failed = (task: string): string => `${task}.status = 'failed' AND NOT ${task}.sandbox`;
const rank = `(
  SELECT count(*)::integer FROM tasks twin
  WHERE ${failed('twin')} AND twin.completed_at = task.completed_at AND twin.id < task.id
)`;

/** Parameters: how many, and the time and the rank to start before. */
const pageStatement = `
SELECT task.id, task.kind, task.owner_id AS key_id, coalesce(caller.name, '') AS key_name, task.model, drawing.served_by,
  task.error, task.attempt AS attempts, task.deaths AS worker_deaths, task.created_at, task.completed_at AS at, ${rank} AS rank
FROM tasks task LEFT JOIN drawings drawing ON drawing.id = task.id LEFT JOIN api_keys caller ON caller.id = task.owner_id
WHERE ${failed('task')} AND task.completed_at <= $2 AND (task.completed_at < $2 OR ${rank} < $3)
ORDER BY task.completed_at DESC, task.id DESC LIMIT $1`;

const findStatement = `
SELECT task.id, task.completed_at AS at, ${rank} AS rank FROM tasks task WHERE task.id = $1 AND ${failed('task')}`;

type Row = TimedRow & Omit<FailureDto, 'created_at' | 'completed_at'> & { created_at: Date };

/** The failed tasks of all keys, without their texts. */
@Injectable()
export class FailuresService {
  constructor(private readonly dataSource: DataSource) {}

  list(): List {
    return listByTime<Row>(
      ({ count, at, rank: below }) => this.dataSource.query(pageStatement, [count, at, below]),
      async (id) => (await this.dataSource.query<TimedRow[]>(findStatement, [id])).at(0),
      ({ at, rank: _, created_at, ...row }): FailureDto => ({
        ...row,
        created_at: created_at.toISOString(),
        completed_at: at.toISOString(),
      }),
    );
  }
}
