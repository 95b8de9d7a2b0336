import { limits } from '../common/limits';
import { textProblem } from '../fields/fields';
import { QueryParameter, WordParameter } from '../fields/fields-of-queries';
import { type TaskStatus, taskStatuses } from './task-status';

/** Which Generations or Prompts a list is limited to. */
export class TaskQueryDto {
  @WordParameter({ description: 'Only those with this status.', values: taskStatuses }) status?: TaskStatus;
  @UserParameter('Only those of this `user`.') user?: string;

  @TimeParameter('after') created_after?: Date;
  @TimeParameter('before') created_before?: Date;
}

export function UserParameter(description: string) {
  return QueryParameter({
    description,
    schema: { type: 'string', minLength: 1, maxLength: limits.userLength, pattern: String.raw`\S` },
    read: (sent, refuse) => {
      const problem = textProblem(sent, { minLength: 1, maxLength: limits.userLength });
      return problem === undefined ? sent : refuse(problem);
    },
  });
}

function TimeParameter(side: 'after' | 'before') {
  return QueryParameter({
    description: `Only those that were accepted ${side} this time; a day begins at 00:00 UTC.`,
    schema: {
      anyOf: [
        { type: 'string', format: 'date-time' },
        { type: 'string', format: 'date' },
      ],
    },
    read: (sent, refuse) =>
      timeOf(sent) ??
      refuse('must be a time such as 2026-11-20T09:21:33.123Z, or a day such as 2026-11-20, which begins at 00:00 UTC'),
  });
}

function timeOf(sent: string): Date | undefined {
  // A plus sign that is not escaped arrives as a space.
  const text = sent.replace(' ', '+');
  const isTimestamp = /^[1-9]\d{3}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/.test(text);
  const time = new Date(isTimestamp ? text : NaN);
  // `Date` takes the 30th of February for the 1st or 2nd of March.
  const day = text.slice(0, 10);
  const isReal = !Number.isNaN(time.getTime()) && new Date(day).toISOString().startsWith(day);
  return isReal ? time : undefined;
}
