import { type Query, QueryParameter, WordParameter } from '../fields/fields-of-queries';
import { Decimal, Integer, Text, TextOrNull, Time } from '../fields/fields-of-answers';
import { UserParameter } from '../tasks/task-query.dto';

/** How usage can be grouped. */
export const usageGroups = ['day', 'key', 'user', 'model', 'finetune'] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** Whose usage: that of the key that asks, of all keys of its account, or of all keys. */
export const usageScopes = ['key', 'account', 'all'] as const;
export type UsageScope = (typeof usageScopes)[number];

/** A sum of usage. Of the fields from `day` to `finetune` it has those of `group_by`. */
export class UsageDto {
  @Text('UTC day.', { format: 'date', required: false }) day?: string;
  @Text('Id of the API key.', { required: false }) key?: string;
  @TextOrNull('The `user` that was sent; null without one.', { required: false }) user?: string | null;
  @Text('The model that was asked for.', { required: false }) model?: string;
  @TextOrNull('Id of the Fine-Tune; null without one.', { required: false }) finetune?: string | null;
  @Integer('Finished pictures.') images: number;
  @Integer('Denoising steps of these pictures.') steps: number;
  @Integer('Pixels of these pictures.') pixels: number;
  @Decimal('Seconds of drawing and training.') compute_seconds: number;
}

/** What of the service's work can be counted by. */
export const activityGroups = ['key', 'user', 'model', 'finetune'] as const;
export type ActivityGroup = (typeof activityGroups)[number];

/** What ended in an hour or a day, over all keys but those of the sandbox. */
export class ActivityDto {
  @Time('Its beginning, in UTC.') time: string;
  @Text('Id of the API key.', { required: false }) key?: string;
  @TextOrNull('The `user` that was sent; null without one.', { required: false }) user?: string | null;
  @Text('The model that was asked for.', { required: false }) model?: string;
  @TextOrNull('Id of the Fine-Tune of Prompts and trainings; null without one.', { required: false })
  finetune?: string | null;
  @Integer('Pictures of what has succeeded.') images: number;
  @Integer('Tasks that have succeeded.') succeeded: number;
  @Integer('Tasks that have failed.') failed: number;
  @Integer('Tasks that were canceled.') canceled: number;
  @Decimal('Seconds of drawing and training.') compute_seconds: number;
  @Decimal('Seconds that they waited together, until a worker began.') queue_seconds: number;
}

const activityDays = { hour: 2, day: 30 };

/** The requested hours or days. */
export class ActivityQueryDto {
  @WordParameter({
    values: ['hour', 'day'] as const,
    description: 'One row for each hour of the last 48, or for each UTC day of the last 30.',
    default: 'hour',
  })
  per: 'hour' | 'day' = 'hour';

  @WordParameter({ values: activityGroups, description: 'And one for each of these.' }) group_by?: ActivityGroup;

  /** In days. */
  get span(): number {
    return activityDays[this.per];
  }
}

const defaultDays = 30;
const dayMs = 86_400_000;

/** The requested usage, by default of the last 30 days; UTC days as `YYYY-MM-DD`, both inclusive. */
export class UsageQueryDto {
  @DayParameter('First day; 29 days before `to` when left out.', (first, { to = today() }) =>
    isDay(to) && first > to ? `must not be after "to", which is ${to}` : undefined,
  )
  from?: string;

  @DayParameter('Last day; today when left out.') to?: string;
  @QueryParameter<UsageGroup[]>({
    description: `What each row is for: one or more of ${usageGroups.join(', ')}, with commas. A Generation with \`finetunes\` counts for each of them under \`finetune\`, and once everywhere else.`,
    schema: { type: 'string', pattern: `^(${usageGroups.join('|')})(,(${usageGroups.join('|')}))*$`, default: 'day' },
    read: (sent, refuse) => {
      const words = sent.split(',');
      const groups = usageGroups.filter((group) => words.includes(group));
      const isRead = groups.length === words.length;
      return isRead ? (words as UsageGroup[]) : refuse(`must be one or more of ${usageGroups.join(', ')}, each once`);
    },
  })
  group_by: UsageGroup[] = ['day'];

  @WordParameter({
    values: usageScopes,
    description:
      'Whose usage: that of your key, of all keys of your account, or of all keys, which needs the scope `admin`.',
    default: 'key',
  })
  scope: UsageScope = 'key';

  @UserParameter('Only what was used for this `user`.') user?: string;

  /** With the defaults. */
  get days(): { first: string; last: string } {
    const last = this.to ?? today();
    return { first: this.from ?? dayOf(Date.parse(last) - (defaultDays - 1) * dayMs), last };
  }
}

function DayParameter(
  description: string,
  problemOf: (day: string, query: Query) => string | undefined = () => undefined,
) {
  return QueryParameter({
    description,
    schema: { type: 'string', format: 'date', pattern: '^[1-9]' },
    read: (sent, refuse, query) => {
      const problem = isDay(sent) ? problemOf(sent, query) : 'must be a day as YYYY-MM-DD';
      return problem === undefined ? sent : refuse(problem);
    },
  });
}

/** Years before 1000 are useless here, and year 0 is not a date in PostgreSQL. */
function isDay(sent: unknown): sent is string {
  if (typeof sent !== 'string' || !/^[1-9]\d{3}-\d\d-\d\d$/.test(sent)) return false;
  const time = Date.parse(sent);
  return !Number.isNaN(time) && dayOf(time) === sent;
}

function today(): string {
  return dayOf(Date.now());
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
