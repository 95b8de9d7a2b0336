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
