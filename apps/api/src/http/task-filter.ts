import type { TaskQueryDto } from '@app/domain/http';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** Limits a query to some of its rows; its image tasks have the alias `task`. */
export function filterTasks<T extends ObjectLiteral>(
  query: SelectQueryBuilder<T>,
  { status, created_after: createdAfter, created_before: createdBefore }: TaskQueryDto,
): void {
  if (status) query.andWhere('task.status = :status', { status });
  if (createdAfter) query.andWhere('task.created_at > :createdAfter', { createdAfter });
  if (createdBefore) query.andWhere('task.created_at < :createdBefore', { createdBefore });
}
