import { imageTaskStatuses } from '@app/domain';
import { Query } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import type { TaskFilter } from '../infrastructure/task-filter';
import { QueryProblems } from './query-problems';

/** The query parameters `status`, `created_after` and `created_before`, checked. */
export const FilterQuery = () => Query(new FilterPipe());

/** Checks the parameters that limit a list. */
class FilterPipe implements PipeTransform {
  /** @throws InvalidError naming the parameters that are wrong */
  transform(query: Record<string, unknown>): TaskFilter {
    const problems = new QueryProblems();
    const { status } = query;
    const known = imageTaskStatuses.find((name) => name === status);
    if (status !== undefined && !known) problems.add('status', `must be one of ${imageTaskStatuses.join(', ')}`);
    const createdAfter = timeOf('created_after', query, problems);
    const createdBefore = timeOf('created_before', query, problems);
    problems.throwIfAny();
    return {
      ...(known && { status: known }),
      ...(createdAfter && { createdAfter }),
      ...(createdBefore && { createdBefore }),
    };
  }
}

const timestamp = /^[1-9]\d{3}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/;

function timeOf(name: string, query: Record<string, unknown>, problems: QueryProblems): Date | undefined {
  const value = query[name];
  if (value === undefined) return undefined;
  // A plus sign that is not escaped arrives as a space.
  const text = typeof value === 'string' ? value.replace(' ', '+') : '';
  const time = timestamp.test(text) ? new Date(text) : undefined;
  // `Date` takes the 30th of February for the 1st or 2nd of March.
  const isReal =
    time && !Number.isNaN(time.getTime()) && new Date(text.slice(0, 10)).toISOString().startsWith(text.slice(0, 10));
  if (isReal) return time;
  problems.add(
    name,
    'must be a time such as 2026-11-20T09:21:33.123Z, or a day such as 2026-11-20, which begins at 00:00 UTC',
  );
  return undefined;
}
