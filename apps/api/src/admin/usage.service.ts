import type { UsageDto, UsageGroup, UsageQueryDto } from '@app/domain/http';
import { type ApiKey, invalidParameter } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { scopeMissing } from '../http/api-key.guard';

/** Rows of one answer, of about 200 bytes each. */
const maxRows = 50_000;

const columns: Readonly<Record<UsageGroup, { expression: string; order: 'ASC' | 'DESC' }>> = {
  day: { expression: `to_char(used.day, 'YYYY-MM-DD')`, order: 'DESC' },
  key: { expression: 'used.owner_id', order: 'ASC' },
  user: { expression: `nullif(used.end_user, '')`, order: 'ASC' },
  model: { expression: 'used.model', order: 'ASC' },
  finetune: { expression: `nullif(used.finetune_id, '')`, order: 'ASC' },
};

/** Keys by scope; parameter $3 is the key or the account. */
const keysOf: Readonly<Record<UsageQueryDto['scope'], string>> = {
  key: 'owner_id = $3',
  account: 'owner_id IN (SELECT id FROM api_keys WHERE account_id = $3)',
  all: '$3::varchar IS NOT NULL',
};

const sums = ['images', 'steps', 'pixels', 'compute_seconds'] as const;
const sumsWith = (sign: '' | '-'): string => sums.map((name) => `${sign}${name}`).join(', ');

/**
 * The days' usage, from which that with a user or several Fine-Tunes is taken, and added again in detail.
 * @param finetunes in SQL: the Fine-Tunes of a row in detail
 */
const usedStatement = (whose: string, finetunes: string): string => `
  SELECT day, owner_id, '' AS end_user, model, finetune_id, ${sumsWith('')}
  FROM daily_usage WHERE day BETWEEN $1 AND $2 AND ${whose}
  UNION ALL
  SELECT day, owner_id, '', model, finetune_id, ${sumsWith('-')}
  FROM detailed_usage WHERE day BETWEEN $1 AND $2 AND ${whose}
  UNION ALL
  SELECT day, owner_id, end_user, model, each, ${sumsWith('')}
  FROM detailed_usage CROSS JOIN LATERAL unnest(${finetunes}) each WHERE day BETWEEN $1 AND $2 AND ${whose}`;

const everyFinetune = `CASE finetunes WHEN '' THEN ARRAY[finetune_id::text] ELSE string_to_array(finetunes, ',') END`;

type Row = Partial<Record<UsageGroup, string | null>> & Record<(typeof sums)[number], string>;

/** The usage of keys. */
@Injectable()
export class UsageService {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * As `of`, for the key itself.
   * @throws ForbiddenError for the usage of all keys without the scope `admin`; what `of` throws
   */
  async findAll(key: ApiKey, query: UsageQueryDto): Promise<UsageDto[]> {
    if (query.scope === 'all' && !key.has('admin')) throw scopeMissing('admin');
    return this.of(key, query);
  }

  /**
   * One sum for each combination of what it is grouped by that has any, of a key and its account.
   * @throws InvalidError for too many rows
   */
  async of(key: ApiKey, { days, group_by: groups, scope, user }: UsageQueryDto): Promise<UsageDto[]> {
    const used = usedStatement(keysOf[scope], groups.includes('finetune') ? everyFinetune : 'ARRAY[finetune_id]');
    const rows = await this.dataSource.query<Row[]>(
      `SELECT ${groups.map((group) => `${columns[group].expression} AS "${group}"`).join(', ')},
         ${sums.map((name) => `sum(${name}) AS ${name}`).join(', ')}
       FROM (${used}) used
       WHERE $4::varchar IS NULL OR end_user = $4
       GROUP BY ${groups.map((_, index) => index + 1).join(', ')}
       HAVING sum(images) <> 0 OR sum(steps) <> 0 OR abs(sum(compute_seconds)) >= 0.0005
       ORDER BY ${groups.map((group, index) => `${index + 1} ${columns[group].order} NULLS LAST`).join(', ')}
       LIMIT ${maxRows + 1}`,
      [days.first, days.last, scope === 'account' ? key.accountId : key.id, user],
    );
    if (rows.length > maxRows)
      throw invalidParameter('from', `leads to more than ${maxRows} rows; ask for fewer days, or group by less`);
    return rows.map(({ images, steps, pixels, compute_seconds: seconds, ...group }) => ({
      ...(group as Partial<UsageDto>),
      images: Number(images),
      steps: Number(steps),
      pixels: Number(pixels),
      // Rounded to milliseconds: more digits are noise of the addition.
      compute_seconds: Math.round(Number(seconds) * 1000) / 1000,
    }));
  }
}
