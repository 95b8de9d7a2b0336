import type { Drawing, Task } from '@app/domain';
import type { EntityManager } from 'typeorm';

/** What a task has used. */
interface Used {
  images?: number;
  steps?: number;
  pixels?: number;
  computeSeconds: number;
}

type UsedBy = Pick<Task, 'ownerId' | 'model' | 'endUser'> & { finetuneId: string | null; finetunes?: string };

/** Adds the values of the columns of both tables. */
const adding = (table: string): string => `
  images = ${table}.images + excluded.images, steps = ${table}.steps + excluded.steps,
  pixels = ${table}.pixels + excluded.pixels, compute_seconds = ${table}.compute_seconds + excluded.compute_seconds`;

const dailyStatement = `
INSERT INTO daily_usage (owner_id, day, model, finetune_id, images, steps, pixels, compute_seconds)
VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6, $7)
ON CONFLICT (owner_id, day, model, finetune_id) DO UPDATE SET ${adding('daily_usage')}`;

const detailedStatement = `
INSERT INTO detailed_usage (owner_id, day, model, finetune_id, images, steps, pixels, compute_seconds, end_user, finetunes)
VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (owner_id, day, model, finetune_id, end_user, finetunes) DO UPDATE SET ${adding('detailed_usage')}`;

/** Pictures that are drawn and not stored are charged as others are, at the size at which they were looked at. */
export const withFiltered = (
  { images = 0, steps = 0, pixels = 0, computeSeconds }: Used,
  drawing: Pick<Drawing, 'steps' | 'width' | 'height'>,
  filtered: number,
): Used => ({
  images: images + filtered,
  steps: steps + filtered * drawing.steps,
  pixels: pixels + filtered * drawing.width * drawing.height,
  computeSeconds,
});

/** The Fine-Tune of a Prompt, or those of a Generation. */
export const finetunesOf = ({ finetuneId, inputs }: Pick<Drawing, 'finetuneId' | 'inputs'>) => ({
  finetuneId,
  finetunes: (inputs?.finetunes ?? [])
    .map(({ id }) => id)
    .sort()
    .join(),
});

/** Adds what a task has used to its key's usage of today. */
export async function recordUsage(
  manager: EntityManager,
  { ownerId, model, endUser, finetuneId, finetunes = '' }: UsedBy,
  { images = 0, steps = 0, pixels = 0, computeSeconds }: Used,
): Promise<void> {
  const values = [ownerId, model, finetuneId ?? '', images, steps, pixels, computeSeconds];
  await manager.query(dailyStatement, values);
  if (endUser !== null || finetunes !== '')
    await manager.query(detailedStatement, [...values, endUser ?? '', finetunes]);
}

/** Parameters: the user, and the accounts; null: all. */
const forgetStatement = `
WITH theirs AS (
  DELETE FROM detailed_usage WHERE end_user = $1
    AND ($2::varchar[] IS NULL OR owner_id IN (SELECT id FROM api_keys WHERE account_id = ANY($2)))
  RETURNING *
),
kept AS (
  INSERT INTO detailed_usage (owner_id, day, model, finetune_id, images, steps, pixels, compute_seconds, end_user, finetunes)
  SELECT owner_id, day, model, finetune_id, images, steps, pixels, compute_seconds, '', finetunes
  FROM theirs WHERE finetunes <> ''
  ON CONFLICT (owner_id, day, model, finetune_id, end_user, finetunes) DO UPDATE SET ${adding('detailed_usage')}
)
SELECT count(*)::integer AS count FROM theirs`;

/**
 * Takes a user out of the usage: that with several Fine-Tunes keeps these, and all else is in the sums of the days.
 * @returns the number of rows
 */
export async function forgetUserInUsage(
  manager: EntityManager,
  user: string,
  accounts: readonly string[] | undefined,
): Promise<number> {
  const [{ count }] = await manager.query<[{ count: number }]>(forgetStatement, [user, accounts ?? null]);
  return count;
}
