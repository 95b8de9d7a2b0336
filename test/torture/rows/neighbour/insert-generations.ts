import type { Site } from '../../site';
import type { FirstKey } from './first-key';

/** Inserts records of the first key into the database, like a year of use. @returns their ids */
export async function insertGenerations(
  site: Site,
  { caller: { token } }: FirstKey,
  { count, task, metadataBytes = 0 }: { count: number; task: Record<string, unknown>; metadataBytes?: number },
): Promise<string[]> {
  const columns = Object.keys(task);
  const values = columns.map((_, index) => `$${index + 4}`);
  const rows = await site.query<{ id: string }>(
    `WITH owner AS (SELECT id FROM api_keys WHERE prefix = $1),
     made AS (
       SELECT left(translate(encode(sha256(random()::text::bytea || n::text::bytea), 'base64'), '+/=', '-__'), 24) AS id
       FROM generate_series(1, $2::int) n),
     tasks AS (
       INSERT INTO image_tasks (id, kind, owner_id, prompt, cfg, steps, seed, model, aspect_ratio, high_resolution,
                                num_images, created_at, ${columns.join(', ')})
       SELECT made.id, 'generation', owner.id, 'a red circle', 7.5, 2, 1, 'shapes', 'square', false, 1, now(), ${values.join(', ')}
       FROM made, owner RETURNING id, owner_id)
     INSERT INTO generations (id, owner_id, metadata)
     SELECT id, owner_id, json_build_object('filling', repeat(md5(id), $3::int / 32)) FROM tasks RETURNING id`,
    [token.split('_')[1], count, metadataBytes, ...Object.values(task)],
  );
  await site.query('ANALYZE');
  return rows.map(({ id }) => id);
}
