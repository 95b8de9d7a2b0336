import type { UsageGroup } from '@app/domain/http';
import { usageGroups } from '@app/domain/http';
import { applyDecorators, Query } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import { ApiQuery } from '@nestjs/swagger';
import { QueryProblems } from '../http/query-problems';

/** The requested usage; UTC days as `YYYY-MM-DD`, both inclusive. */
export interface UsageQuery {
  from: string;
  to: string;
  groupBy: UsageGroup;
}

const defaultDays = 30;
const dayMs = 86_400_000;

/** The `from`, `to` and `group_by` query parameters, checked; by default the last 30 days, by day. */
export const UsageParameters = () => Query(new UsagePipe());

const day = { type: 'string', format: 'date', pattern: '^[1-9]' } as const;

/** Documents these parameters. */
export const ApiUsageParameters = () =>
  applyDecorators(
    ApiQuery({
      name: 'from',
      required: false,
      description: 'First day; 29 days before `to` when left out.',
      schema: day,
    }),
    ApiQuery({ name: 'to', required: false, description: 'Last day; today when left out.', schema: day }),
    ApiQuery({ name: 'group_by', required: false, schema: { type: 'string', enum: [...usageGroups], default: 'day' } }),
  );

/** Checks the query parameters of the usage. */
export class UsagePipe implements PipeTransform {
  constructor(private readonly now: () => number = Date.now) {}

  /** @throws InvalidError naming the parameters that are wrong */
  transform({ from, to, group_by: groupBy = 'day' }: Record<string, unknown>): UsageQuery {
    const problems = new QueryProblems();
    const given = { from: checkDay('from', from, problems), to: checkDay('to', to, problems) };
    const last = given.to ?? dayOf(this.now());
    const first = given.from ?? dayOf(Date.parse(last) - (defaultDays - 1) * dayMs);
    const isLastKnown = given.to !== undefined || to === undefined;
    if (isLastKnown && first > last) problems.add('from', `must not be after "to", which is ${last}`);
    const group = usageGroups.find((name) => name === groupBy);
    if (!group) problems.add('group_by', `must be one of ${usageGroups.join(', ')}`);
    problems.throwIfAny();
    return { from: first, to: last, groupBy: group! };
  }
}

function checkDay(name: string, value: unknown, problems: QueryProblems): string | undefined {
  if (value === undefined) return undefined;
  // Years before 1000 are useless here, and year 0 is not a date in PostgreSQL.
  if (typeof value === 'string' && /^[1-9]\d{3}-\d\d-\d\d$/.test(value)) {
    const time = Date.parse(value);
    if (!Number.isNaN(time) && dayOf(time) === value) return value;
  }
  problems.add(name, 'must be a day as YYYY-MM-DD');
  return undefined;
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
