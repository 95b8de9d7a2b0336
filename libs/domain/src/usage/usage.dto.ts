import { type Query, QueryParameter, WordParameter } from '../fields/fields-of-queries';
import { Decimal, Integer, Text, TextOrNull } from '../fields/fields-of-answers';

/** How usage can be grouped. */
export const usageGroups = ['day', 'model', 'finetune'] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** A caller's usage, with one of the fields `day`, `model` and `finetune`: the requested one. */
export class UsageDto {
  @Text('UTC day.', { format: 'date', required: false }) day?: string;
  @Text('The model that was asked for.', { required: false }) model?: string;
  @TextOrNull('Id of the Fine-Tune; null without one.', { required: false }) finetune?: string | null;
  @Integer('Finished pictures.') images: number;
  @Integer('Denoising steps of these pictures.') steps: number;
  @Decimal('Seconds of drawing.') compute_seconds: number;
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
  @WordParameter({
    values: usageGroups,
    description:
      'One row for each day, each model that was asked for, or each Fine-Tune of Prompts and trainings. Generations with `finetunes` count among those without a Fine-Tune.',
    default: 'day',
  })
  group_by: UsageGroup = 'day';

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
