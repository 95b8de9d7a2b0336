import type { ImageTaskStatus } from '@app/domain';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** Which Generations or Prompts a list is limited to. */
export interface TaskFilter {
  status?: ImageTaskStatus;
  createdAfter?: Date;
  createdBefore?: Date;
}

/** Limits a query to some of its rows; its image tasks have the alias `task`. */
export function filterTasks<T extends ObjectLiteral>(
  query: SelectQueryBuilder<T>,
  { status, createdAfter, createdBefore }: TaskFilter,
): void {
  if (status) query.andWhere('task.status = :status', { status });
  if (createdAfter) query.andWhere('task.created_at > :createdAfter', { createdAfter });
  if (createdBefore) query.andWhere('task.created_at < :createdBefore', { createdBefore });
}
